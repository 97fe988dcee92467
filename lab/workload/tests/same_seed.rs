//! Scenario: a user repeats an experiment with its seed, possibly years later. The drawn messages
//! must not change. If a snapshot here changes, old seeds have lost their meaning.

use apus_workload::{Arrivals, Stream, Workload, rng};
use rand::distr::Distribution;

#[test]
fn sizes() {
    let text: Vec<String> = (1..=5)
        .map(|number| {
            let workload = Workload::published(number);
            let sizes: Vec<u32> =
                workload.sizes().sample_iter(rng(1, Stream::Sizes)).take(12).collect();
            format!("{workload}: {sizes:?}")
        })
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn arrivals() {
    let arrivals = Arrivals::at_rate(10_000.0, rng(1, Stream::Arrivals));
    insta::assert_debug_snapshot!(arrivals.take(12).collect::<Vec<_>>());
}

#[test]
fn another_seed_or_purpose_is_another_stream() {
    use rand::Rng;
    let first = |seed, stream| rng(seed, stream).next_u64();
    let values = [
        first(1, Stream::Sizes),
        first(2, Stream::Sizes),
        first(1, Stream::Arrivals),
        first(1, Stream::Destinations),
    ];
    for (index, value) in values.iter().enumerate() {
        assert!(!values[..index].contains(value), "{values:?}");
    }
}

#[test]
fn a_rate_is_kept_and_gaps_are_exponential() {
    let count = 100_000;
    let times: Vec<f64> = Arrivals::at_rate(1000.0, rng(3, Stream::Arrivals))
        .take(count)
        .map(|at| at.as_secs_f64())
        .collect();
    // The mean of n exponential gaps has a standard deviation of 1/sqrt(n): five of them are 1.6 %.
    let mean = times[count - 1] / count as f64;
    assert!((mean * 1000.0 - 1.0).abs() < 0.016, "mean gap {mean}");
    // A share of exp(-1) of exponential gaps is longer than the mean.
    let longer = times.windows(2).filter(|pair| pair[1] - pair[0] > 0.001).count();
    assert!((longer as f64 / count as f64 - (-1.0f64).exp()).abs() < 0.01, "{longer} of {count}");
}

#[test]
fn a_load_is_a_rate_of_wire_bytes() {
    // 10 Gbit/s carry 1.25 GB/s: at 80 % that is a million messages of 1000 bytes a second.
    let arrivals = Arrivals::at_load(0.8, 10e9, 1000.0, rng(1, Stream::Arrivals));
    assert!((arrivals.per_second() - 1e6).abs() < 1e-3);
}

#[test]
#[should_panic(expected = "a rate of 0 messages/s")]
fn a_rate_of_nothing_is_refused() {
    let _ = Arrivals::at_rate(0.0, rng(1, Stream::Arrivals));
}
