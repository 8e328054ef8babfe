"""Known answers of the cookbook about kernels that were tried, for the history in ``cookbook_history``."""

from __future__ import annotations

from tests.integration.regression.cookbook_answers import GPU, Answer

AB, CD, EF = "ab" * 6, "cd" * 6, "ef" * 6
TILE = {"run": "try__tile"}

CANDIDATES = [
    Answer(
        "candidates_beside_nights",
        "night spec predictions_word time_word energy_word energy_effect_percent adjusted_mj_median night_before "
        "night_adjusted_mj adjusted_difference_percent promoted",
        [
            ("2026-03-07", "kernels/original.py", "worse", "inconclusive", "inconclusive", None, None, "2026-03-07",
             None, None, False),
            ("2026-03-06", "tile-64", "same", "same", "better", -10.0, 0.6, "2026-03-06", 0.6605, -9.159727, True),
        ],
    ),
    Answer(
        "candidates_beside_nights",
        "kernel_variant kernel pinned_kernel cuda_ms_median night_cuda_ms cuda_ms_difference_percent energy_trust",
        [("class_blocks", EF, AB, 0.0163, 0.0172, -5.232558, "verified")],
        GPU | {"until": "2026-03-06"},
    ),
    Answer(
        "kernel_lineage",
        "kernel replaced_kernel kernel_changed promoted spec energy_word adjusted_mj_median "
        "replaced_adjusted_mj_median accepted_by reason",
        [
            (AB, None, None, False, None, None, 0.6, None, "ana", "first"),
            (AB, AB, False, False, None, None, 0.61, 0.6, "ben", "better"),
            (AB, None, None, False, None, None, 0.6605, None, "ana", "new driver"),
            (EF, AB, True, True, "tile-64", "better", 0.6, 0.6605, "ben", "tile 64: a tenth less"),
        ],
    ),
    Answer("kernel_lineage", "kernel", [], {"workload": "learner"}),
    Answer(
        "candidate_differences",
        "night draw query_index candidate pinned frozen candidate_score pinned_score gap",
        [("2026-03-07", 3, 17, 5, 2, 2, -10.5, -10.25, 0.25)],
    ),
    Answer("candidate_differences", "draw", [], TILE),
    Answer(
        "comparison_blocks",
        "round block valid candidate_mj pinned_mj difference_mj control_mj difference_microseconds",
        [
            (0, 0, True, 0.5395, 0.6, -0.0605, 0.3, -0.0005),
            (0, 1, True, 0.5405, 0.6, -0.0595, 0.3, 0.0005),
            (1, 0, True, 0.5395, 0.6, -0.0605, 0.3, -0.0005),
            (1, 1, True, 0.5405, 0.6, -0.0595, 0.3, 0.0005),
            (2, 0, False, 0.9, 0.6, 0.3, 0.3, -0.0015),
        ],
        TILE,
    ),
    Answer("comparison_blocks", "round", []),
]  # fmt: skip
