"""Known answers of the cookbook about energy, time and rounds, for the history in ``cookbook_history``."""

from __future__ import annotations

from tests.integration.regression.cookbook_answers import GPU, Answer

TWO_KERNELS = (
    "night first_mj second_mj difference_mj difference_percent first_ms second_ms time_difference_percent usable"
)

FIRST = {"until": "2026-03-01"}

TRENDS = [
    Answer(
        "energy_trend",
        "night kernel_variant adjusted_mj_median adjusted_mj_min adjusted_mj_max spread_mj change_percent verdict",
        [
            ("2026-03-01", "class_blocks", 0.6, 0.59, 0.61, 0.02, None, "ok"),
            ("2026-03-01", "fused", 0.5, 0.49, 0.51, 0.02, None, "ok"),
            ("2026-03-02", "class_blocks", 0.61, 0.6, 0.62, 0.02, 1.666667, "ok"),
            ("2026-03-02", "fused", 0.99, 0.98, 1.0, 0.02, 98.0, "ok"),
            ("2026-03-02", "fused", 0.63, 0.62, 0.64, 0.02, -36.363636, "ok"),
            ("2026-03-03", "class_blocks", 0.6, 0.59, 0.61, 0.02, -1.639344, "regression"),
            ("2026-03-05", "fused", 0.52, 0.51, 0.53, 0.02, None, "ok"),
            ("2026-03-06", "class_blocks", 0.6605, 0.65, 0.67, 0.02, 10.083333, "ok"),
            ("2026-03-07", "class_blocks", 0.9, 0.89, 0.91, 0.02, 36.260409, "invalid_measurement"),
            ("2026-03-07", "fused", 0.55, 0.54, 0.56, 0.02, -12.698413, "ok"),
            ("2026-03-08", "class_blocks", 0.66, 0.65, 0.67, 0.02, -0.0757, "regression"),
            ("2026-03-08", "fused", 0.01, 0.0, 0.02, 0.02, -98.181818, "ok"),
            ("2026-04-01", "class_blocks", 0.66, 0.65, 0.67, 0.02, 0.0, "inconclusive"),
        ],
        GPU,
    ),
    Answer(  # what was injected is compared with nothing, and nothing with it
        "energy_trend",
        "night inject change_percent",
        [("2026-03-02", "energy+10%", None), ("2026-03-03", "faulty_sensor", None)],
        {"device": "GPU-simulated"},
    ),
    Answer("energy_trend", "night adjusted_mj_median", [("2026-03-01", 0.63)], {"device": "Other GPU"}),
    Answer("energy_trend", "night adjusted_mj_median", [("2026-03-01", 50.0)], {"workload": "learner"} | FIRST),
    Answer(
        "energy_trend",
        "dag_run_id inject",
        [
            ("scheduled__2026-03-02", None),
            ("manual__fused-2a", None),
            ("manual__fused-2b", None),
            ("manual__energy+10%", "energy+10%"),
        ],
        {"since": "2026-03-02", "until": "2026-03-02"},
    ),
    Answer(
        "energy_trend",
        "dag_run_id withdrawn",
        [("scheduled__2026-03-08", None), ("manual__fused-8", "all")],
        {"since": "2026-03-08", "until": "2026-03-08"},
    ),
    Answer(
        "time_trend",
        "night kernel_variant cuda_ms_median week week_median_ms nights_of_week off_week_percent",
        [
            ("2026-03-01", "class_blocks", 0.0164, "2026-02-23", 0.0164, 1, 0.0),
            ("2026-03-01", "fused", 0.0123, "2026-02-23", 0.0123, 1, 0.0),
            ("2026-03-02", "class_blocks", 0.0168, "2026-03-02", 0.0172, 5, -2.325581),
            ("2026-03-02", "fused", 0.05, "2026-03-02", 0.0191, 4, 161.780105),
            ("2026-03-02", "fused", 0.021, "2026-03-02", 0.0191, 4, 9.947644),
            ("2026-03-03", "class_blocks", 0.0164, "2026-03-02", 0.0172, 5, -4.651163),
            ("2026-03-05", "fused", 0.0123, "2026-03-02", 0.0191, 4, -35.602094),
            ("2026-03-06", "class_blocks", 0.0172, "2026-03-02", 0.0172, 5, 0.0),
            ("2026-03-07", "class_blocks", 0.0172, "2026-03-02", 0.0172, 5, 0.0),
            ("2026-03-07", "fused", 0.0172, "2026-03-02", 0.0191, 4, -9.947644),
            ("2026-03-08", "class_blocks", 0.0172, "2026-03-02", 0.0172, 5, 0.0),
            ("2026-03-08", "fused", 0.0172, "2026-03-02", 0.0191, 4, -9.947644),
            ("2026-04-01", "class_blocks", 0.0172, "2026-03-30", 0.0172, 1, 0.0),
        ],
        GPU,
    ),
    Answer(
        "time_trend",
        "night cuda_ms_median wall_ms_median week_median_ms",
        [("2026-03-04", None, 0.0165, 0.0165)],
        {"device": "cpu-1"},
    ),
    Answer(
        "reference_load_trend",
        "night joules_per_1e12_operations joules_before joules_after tera_operations_per_s off_board_median_percent",
        [
            ("2026-03-01", 8.4, 8.3, 8.5, 19.0, 0.0),
            ("2026-03-01", 8.4, 8.3, 8.5, 19.0, 0.0),
            ("2026-03-02", 8.6, 8.5, 8.7, 18.0, 2.380952),
            *(3 * [("2026-03-02", 8.4, 8.3, 8.5, 19.0, 0.0)]),
        ],
        GPU | {"until": "2026-03-02"},
    ),
    Answer(
        "idle_power_trend",
        "dag_run_id idle_power_w change_w idle_slope_w_per_s idle_walk_w_per_sqrt_s round_idle_w round_idle_min_w "
        "round_idle_max_w",
        [
            ("scheduled__2026-03-01", 40.0, None, 0.001, 0.02, 40.192857, 39.0, 43.1),
            ("manual__fused-1", 40.0, 0.0, 0.001, 0.02, 40.05, 40.0, 40.1),
            ("scheduled__2026-03-02", 41.5, 1.5, 0.001, 0.02, 40.05, 40.0, 40.1),
            ("manual__fused-2a", 40.0, -1.5, 0.001, 0.02, 40.05, 40.0, 40.1),
            ("manual__fused-2b", 40.0, 0.0, 0.001, 0.02, 40.05, 40.0, 40.1),
            ("manual__fused-2c", 40.0, 0.0, 0.001, 0.02, None, None, None),
        ],
        GPU | {"until": "2026-03-02"},
    ),
    Answer(
        "idle_power_trend",
        "dag_run_id change_w",
        [("scheduled__2026-03-01", None), ("manual__fused-1", 0.0), ("scheduled__other-1", None)],
        {"until": "2026-03-01"},
    ),
    Answer(
        "meters_trend",
        "night rounds median_difference_percent largest_difference_percent counter_j integrated_j limit_percent "
        "gate_passed",
        [
            ("2026-03-06", 6, 0.2, 3.0, 6000.0, 6041.0, 5.0, True),
            ("2026-03-07", 7, 8.0, 10.0, 7000.0, 6464.646465, 5.0, False),
            ("2026-03-07", 7, 0.2, 0.2, 7000.0, 7014.0, 5.0, True),
        ],
        GPU | {"since": "2026-03-06", "until": "2026-03-07"},
    ),
    Answer(
        "energy_by_driver",
        "kernel_variant protocol driver nights first_night last_night adjusted_mj cuda_ms "
        "reference_joules_per_1e12_operations adjusted_change_percent cuda_ms_change_percent",
        [
            ("class_blocks", "audited", "570.1", 3, "2026-03-01", "2026-03-03", 0.6, 0.0164, 8.4, None, None),
            ("class_blocks", "audited", "580.2", 2, "2026-03-06", "2026-03-08", 0.66025, 0.0172, 8.4, 10.041667,
             4.878049),
            ("fused", "audited", "570.1", 3, "2026-03-01", "2026-03-02", 0.63, 0.021, 8.4, None, None),
            ("fused", "audited", "580.2", 1, "2026-03-07", "2026-03-07", 0.55, 0.0172, 8.4, -12.698413, -18.095238),
            ("fused", "interleaved", "570.1", 1, "2026-03-05", "2026-03-05", 0.52, 0.0123, 8.4, None, None),
        ],
        GPU,
    ),
    Answer(
        "energy_by_driver",
        "driver nights adjusted_mj",
        [("570.1", 1, 0.63)],
        {"device": "GPU-2"},
    ),
    Answer("energy_by_driver", "driver", [], {"device": "Simulated GPU"}),
    Answer(
        "boards_compared",
        "device kernel_variant nights per_reference_load joules_per_1e12_operations adjusted_mj",
        [
            ("Test GPU", "fused", 4, 0.069048, 8.4, 0.58),
            ("Test GPU", "class_blocks", 5, 0.071429, 8.4, 0.6),
            ("Other GPU", "class_blocks", 1, 0.07381, 9.0, 0.62),
        ],
    ),
    Answer("boards_compared", "kernel_variant nights adjusted_mj", [("fused", 1, 0.52)], {"figure": "interleaved"}),
    Answer(
        "energy_per_correct",
        "night adjusted_mj_median accuracy microjoules_per_correct_prediction",
        [("2026-03-01", 0.63, 0.68, 0.926471)],
        {"device": "GPU-2"},
    ),
    Answer("energy_per_correct", "night", [], {"device": "Test CPU"}),
    Answer(
        "night_cost",
        "dag_run_id duration_s replays replays_j reference_load_j rounds_with_idle_j rounds_with_idle_s "
        "average_power_w",
        [
            ("manual__fused-1", 300.0, 7000, 8.121, 206.0, None, None, None),
            ("scheduled__2026-03-01", 300.0, 7000, 8.821, 206.0, 6300.0, 200.0, 31.5),
        ],
        GPU | {"until": "2026-03-01"},
    ),
]  # fmt: skip

COMPARISONS = [
    *(
        Answer(
            "kernels_by_night",
            TWO_KERNELS,
            [
                ("2026-03-01", 0.6, 0.5, -0.1, -16.666667, 0.0164, 0.0123, -25.0, True),
                ("2026-03-02", 0.61, 0.63, 0.02, 3.278689, 0.0168, 0.021, 25.0, True),
                ("2026-03-07", 0.9, 0.55, -0.35, -38.888889, 0.0172, 0.0172, 0.0, False),
                ("2026-03-08", 0.66, 0.01, -0.65, -98.484848, 0.0172, 0.0172, 0.0, False),
            ],
            params,
        )
        for params in ({}, {"first": "ababab", "second": "cdcdcd"})
    ),
    Answer("kernels_by_night", "night", [], {"second": "record"}),
    Answer(
        "kernels_compared",
        "device common_nights verified_nights second_needs_less_energy median_difference_mj median_difference_percent "
        "second_is_faster median_time_difference_percent first_night last_night",
        [("Test GPU", 4, 2, 1, -0.04, -6.693989, 1, 0.0, "2026-03-01", "2026-03-08")],
    ),
    Answer("kernels_compared", "device", [], {"second": "record"}),
    Answer(
        "interleaved_differences",
        "night subject rounds median_mj min_mj max_mj detectable_mj larger_than_detectable",
        [("2026-03-05", "candidate - baseline", 3, -0.08, -0.09, -0.07, 0.01, True)],
    ),
    Answer(
        "aligned_against_classic",
        "night rounds classic_mj aligned_mj difference_mj difference_percent larger_than_detectable",
        [("2026-03-01", 7, 0.65, 0.62, 0.03, 4.83871, True)],
        {"device": "GPU-2"},
    ),
    Answer(
        "figure_verdicts",
        "night energy_verdict figure verdict reason_code median_mj detectable_mj",
        [
            ("2026-03-06", "ok", "aligned", "regressed", "energy_above_spread", 0.65, 0.01),
            ("2026-03-06", "ok", "classic", "ok", "within_spread", 0.68, 0.2),
        ],
    ),
    Answer(
        "detectable",
        "night rounds median_mj detectable_mj detectable_percent",
        [("2026-03-01", 7, 0.65, 0.01, 1.538462)],
        {"device": "GPU-2", "figure": "classic"},
    ),
    Answer("detectable", "night rounds median_mj", [("2026-03-05", 3, 0.52)], {"figure": "interleaved"}),
    Answer(
        "rounds_off_median",
        "round adjusted_mj median_mj low_mj high_mj standard_uncertainties",
        [
            (0, 0.61, 0.62, 0.605, 0.613, -5.445545),
            (1, 0.615, 0.62, 0.61, 0.618, -2.970297),
            (6, 0.63, 0.62, 0.625, 0.633, 4.455446),
        ],
        {"device": "GPU-2"},
    ),
    Answer(
        "rounds_off_median",
        "round adjusted_mj median_mj standard_uncertainties",
        [(1, 0.53, 0.52, 4.455446), (2, 0.51, 0.52, -5.445545)],
        {"figure": "interleaved"},
    ),
]

ROUNDS = [
    Answer(
        "invalid_rounds",
        "reason_code rounds percent_of_rounds nights boards first_night last_night",
        [
            ("clock_dropped", 6, 4.918033, 1, 1, "2026-03-02", "2026-03-02"),
            ("throttled", 2, 1.639344, 2, 1, "2026-03-02", "2026-03-06"),
        ],
    ),
    Answer(
        "rounds_measured_again",
        "code attempts rounds valid_in_the_end nights first_night last_night",
        [
            ("other_process", 4, 3, 2, 2, "2026-03-02", "2026-03-06"),
            ("throttled", 1, 1, 1, 1, "2026-03-06", "2026-03-06"),
        ],
    ),
    Answer(
        "failed_gates",
        "month gate failed unchecked checks nights most_frequent_reason",
        [
            ("2026-03-01", "reference_load", 2, 0, 34, 1, "reference_load_off"),
            ("2026-03-01", "meters_agree", 1, 0, 17, 1, "meters_agree_off"),
            ("2026-04-01", "sampling", 0, 1, 1, 1, "sampling_off"),
        ],
    ),
    Answer(
        "unverified_energy",
        "night energy_trust energy_trust_reason gates_failed gates_unchecked adjusted_mj_median",
        [
            ("2026-04-01", "unverified", "sampling", None, "sampling", 0.66),
            ("2026-03-07", "failed", "reference_load, meters_agree", "meters_agree, reference_load", None, 0.9),
        ],
    ),
    Answer(
        "sampling_gaps",
        "night longest_gap_s allowed_s passed",
        [("2026-03-02", 0.04, 0.05, True)],
        {"top": "1"},
    ),
    Answer(
        "sampling_gaps", "night passed reason_code", [("2026-04-01", None, "sampling_off")], {"since": "2026-04-01"}
    ),
]
