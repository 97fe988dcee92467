//! Scenario: a user compares results with the literature. The workloads must match the published
//! ones: means, quantiles and shares are taken from the unreduced distributions in the reference.

use apus_workload::Workload;

/// Returns the relative difference.
fn apart(a: f64, b: f64) -> f64 {
    (a / b - 1.0).abs()
}

#[test]
fn means_match_the_publication() {
    let means = [(1, 189.2), (2, 441.6), (3, 2927.7), (4, 127_797.0), (5, 2_564_690.0)];
    for (number, published) in means {
        let mean = Workload::published(number).sizes().mean();
        assert!(apart(mean, published) < 3e-4, "W{number}: {mean}, published {published}");
    }
}

#[test]
fn means_after_truncation_at_one_megabyte_match_the_publication() {
    // W3's group of sizes around 1 MB is truncated as a whole: a deviation of 0.11 %.
    let means = [(1, 189.2), (2, 433.3), (3, 2423.1), (4, 60_175.0), (5, 385_316.0)];
    for (number, published) in means {
        let mean = Workload::published(number).truncated(1_000_000).sizes().mean();
        assert!(apart(mean, published) < 2e-3, "W{number}: {mean}, published {published}");
    }
}

#[test]
fn the_smallest_and_the_largest_messages_match_the_publication() {
    // The smallest size of W4 (53) belongs to a group whose mean is 66.
    let ends = [
        (1, 8, 100_000),
        (2, 8, 3_529_904),
        (3, 8, 15_158_197),
        (4, 66, 10_000_000),
        (5, 1430, 29_400_000),
    ];
    for (number, smallest, largest) in ends {
        let workload = Workload::published(number);
        assert_eq!(workload.sizes().smallest(), smallest, "W{number}");
        assert_eq!(workload.sizes().largest(), largest, "W{number}");
    }
}

#[test]
fn quantiles_are_near_the_publication() {
    // Rows of docs/reference/workloads.md, *Quantiles*: fraction, then the size of W1 to W5. A
    // group's mean represents sizes up to about a fifth around it.
    let rows = [
        (0.10, [8, 8, 36, 315, 5720]),
        (0.25, [8, 43, 85, 463, 23_520]),
        (0.50, [27, 269, 268, 662, 72_030]),
        (0.75, [203, 394, 469, 42_493, 1_470_000]),
        (0.90, [503, 512, 1755, 120_373, 4_899_510]),
        (0.99, [1876, 3151, 31_013, 3_430_822, 27_440_490]),
        (0.999, [4924, 21_845, 356_516, 10_000_000, 29_400_000]),
        (1.0, [100_000, 3_529_904, 15_158_197, 10_000_000, 29_400_000]),
    ];
    for (fraction, published) in rows {
        for (number, published) in (1..).zip(published) {
            let size = Workload::published(number).sizes().quantile(fraction);
            let apart = apart(f64::from(size), f64::from(published));
            assert!(apart < 0.2, "W{number} at {fraction}: {size}, published {published}");
        }
    }
}

#[test]
fn shares_of_messages_and_bytes_are_near_the_publication() {
    // Rows of docs/reference/workloads.md, *Shares*: length, then (messages, bytes) of W1 to W5
    // truncated at 1 MB. If a length is within a group, the group counts as a whole or not at all:
    // up to 5 points.
    let rows = [
        (200, [(0.7486, 0.1588), (0.4272, 0.0545), (0.4430, 0.0155), (0.0142, 0.0), (0.0, 0.0)]),
        (1000, [(0.9651, 0.6562), (0.9533, 0.5232), (0.8576, 0.0852), (0.6042, 0.005), (0.0, 0.0)]),
        (
            10_000,
            [
                (0.9998, 0.9873),
                (0.9986, 0.7547),
                (0.9713, 0.2415),
                (0.7095, 0.0096),
                (0.15, 0.0019),
            ],
        ),
        (
            100_000,
            [(1.0, 1.0), (0.9997, 0.8583), (0.9959, 0.5084), (0.8868, 0.1742), (0.5431, 0.0449)],
        ),
        // A truncated message does not count as "up to the limit" in the reference.
        (999_999, [(1.0, 1.0), (1.0, 0.98), (0.9997, 0.8949), (0.9721, 0.5364), (0.7, 0.2214)]),
    ];
    for (length, published) in rows {
        for (number, (messages, bytes)) in (1..).zip(published) {
            let sizes = Workload::published(number).sizes().truncated(1_000_000);
            let found = (sizes.messages_up_to(length), sizes.bytes_up_to(length));
            let near = (found.0 - messages).abs() < 0.05 && (found.1 - bytes).abs() < 0.05;
            assert!(near, "W{number} up to {length}: {found:?}, published {:?}", (messages, bytes));
        }
    }
}
