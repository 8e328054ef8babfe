"""The discriminant as a user of torch would write it: batched over the classes, no loop, static shapes.

The yardstick of the benchmark: plain torch, the same in a CUDA graph, and the same compiled. The formula is that of
``gpu_tasks.workloads.qda.classifier``; shapes do not depend on the labels, so that it can be captured.
"""

from __future__ import annotations

from typing import Any

import torch

CLASSES = 10


def predict(x: Any, labels: Any, q: Any) -> Any:
    """(m,) int32 classes of ``q`` (m, 9), trained on ``x`` (n, 9) and ``labels`` (n,) int64, in the dtype of ``x``.

    No checks: a singular class comes out as NaN scores, because ``cholesky`` would have to wait for the GPU to raise.
    """
    member = (labels[None] == torch.arange(CLASSES, device=labels.device)[:, None]).to(x.dtype)
    count = member.sum(dim=1)
    mean = member @ x / count[:, None]
    centred = (x[None] - mean[:, None]) * member[:, :, None]
    covariance = centred.transpose(1, 2) @ centred / count[:, None, None]
    factor, _ = torch.linalg.cholesky_ex(covariance)
    deviation = (q[None] - mean[:, None]).transpose(1, 2)
    whitened = torch.linalg.solve_triangular(factor, deviation, upper=False)
    offset = torch.log(count / len(x)) - torch.log(torch.diagonal(factor, dim1=1, dim2=2)).sum(dim=1)
    scores = offset[:, None] - 0.5 * (whitened * whitened).sum(dim=1)
    return scores.argmax(dim=0).to(torch.int32)
