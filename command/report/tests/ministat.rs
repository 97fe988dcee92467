//! Situation: the statistics of this crate compared with FreeBSD's `ministat`.
//!
//! The results must agree in every digit that ministat prints. Without ministat the test is skipped
//! with a message.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use apus_report::stats::{Difference, Sample};

/// The output of `ministat -A` for two files.
struct Printed {
    /// Number, minimum, maximum, median, average, deviation of each file.
    samples: [Vec<f64>; 2],
    /// The difference, if it is proven.
    proven: Option<Proven>,
}

struct Proven {
    difference: (f64, f64),
    percent: (f64, f64),
    pooled: f64,
}

/// Runs ministat; `None` if it is not installed.
fn ministat(folder: &Path, confidence: &str, sets: [&[f64]; 2]) -> Option<Printed> {
    let names = ["before", "after"].map(|name| folder.join(name));
    for (name, set) in names.iter().zip(sets) {
        let lines: Vec<String> = set.iter().map(ToString::to_string).collect();
        fs::write(name, lines.join("\n") + "\n").unwrap();
    }
    let output = match Command::new("ministat").args(["-A", "-c", confidence]).args(names).output()
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        output => output.unwrap(),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "ministat: {}", String::from_utf8_lossy(&output.stderr));
    Some(parse(&text, confidence))
}

fn parse(text: &str, confidence: &str) -> Printed {
    let sample = |mark: &str| {
        let line = text.lines().filter(|line| line.starts_with(mark)).nth(1);
        let line = line.unwrap_or_else(|| panic!("no line of {mark} in\n{text}"));
        line[1..].split_whitespace().map(|word| word.parse().unwrap()).collect()
    };
    let samples = [sample("x"), sample("+")];
    let percent: f64 = confidence.parse().unwrap();
    if text.contains(&format!("No difference proven at {percent:.1}% confidence")) {
        return Printed { samples, proven: None };
    }
    let head = format!("Difference at {percent:.1}% confidence");
    let (_, rest) = text.split_once(&head).unwrap_or_else(|| panic!("neither verdict:\n{text}"));
    let lines: Vec<&str> = rest.trim().lines().map(str::trim).collect();
    let pair = |line: &str| {
        let (mean, half_width) = line.split_once(" +/- ").unwrap();
        [mean, half_width].map(|part| part.trim_end_matches('%').parse().unwrap()).into()
    };
    let pooled = lines[2].strip_prefix("(Student's t, pooled s = ").unwrap();
    let pooled = pooled.trim_end_matches(')').parse().unwrap();
    Printed {
        samples,
        proven: Some(Proven { difference: pair(lines[0]), percent: pair(lines[1]), pooled }),
    }
}

/// Returns whether two values agree in `digits` significant digits, up to rounding.
fn same(printed: f64, computed: f64, digits: i32) -> bool {
    (printed - computed).abs() <= 0.51 * 10f64.powi(1 - digits) * computed.abs()
}

/// Returns values scattered around `centre`, deterministically: multiples of the golden ratio.
fn values(count: usize, centre: f64, width: f64, shift: f64) -> Vec<f64> {
    let scatter = |at: usize| ((at as f64 + shift) * 0.618_033_988_749_894_9).fract() - 0.5;
    (0..count).map(|at| centre + width * scatter(at)).collect()
}

/// Returns the pairs of sets to compare: tiny and unequal sets, far apart and close together, with
/// and without variation, up to the 100 degrees of freedom at which ministat's table ends.
fn pairs() -> Vec<[Vec<f64>; 2]> {
    let mut pairs = vec![
        [vec![1.0, 2.0, 3.0], vec![101.0, 102.0, 103.0]],
        [vec![1.0, 1.0, 1.0], vec![2.0, 2.0, 2.0]],
        [vec![-3.0, -4.5, -5.0], vec![7.0, 8.0, 9.25, 8.0]],
    ];
    for (before, after) in [(3, 3), (3, 5), (5, 5), (5, 4), (4, 17), (10, 10), (31, 31), (51, 51)] {
        for distance in [0.0, 0.6, 2.0, 40.0] {
            let set = |count, centre, shift| values(count, centre, 3.0, shift);
            pairs.push([set(before, 4.2, 1.0), set(after, 4.2 + distance, 7.3)]);
        }
    }
    pairs
}

/// Names of confidences in ministat, and the confidences of its table. Its last column is
/// mislabelled: for 4 degrees of freedom it has 7.173, Student's t for 99.8 %; the value for 99.5 %
/// is 5.598.
const CONFIDENCES: [(&str, f64); 6] =
    [("80", 0.80), ("90", 0.90), ("95", 0.95), ("98", 0.98), ("99", 0.99), ("99.5", 0.998)];

#[test]
fn ministat_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let (mut proven, mut unproven) = (0, 0);
    for sets in pairs() {
        let sets = [&sets[0][..], &sets[1][..]];
        for (name, confidence) in CONFIDENCES {
            let Some(printed) = ministat(folder.path(), name, sets) else {
                // Unlike `eprintln`, this is visible even if the test passes.
                let skipped =
                    b"SKIPPED: there is no ministat here (Debian: apt install ministat)\n";
                io::stderr().write_all(skipped).unwrap();
                return;
            };
            for (set, printed) in sets.into_iter().zip(&printed.samples) {
                sample_is(&Sample::of(set), printed);
            }
            let ours = Difference::between(sets[0], sets[1], confidence).unwrap();
            match printed.proven {
                Some(printed) => {
                    assert!(ours.is_proven(), "at {name} %: {sets:?}");
                    difference_is(&ours, &printed, sets);
                    proven += 1;
                }
                None => {
                    assert!(!ours.is_proven(), "at {name} %: {sets:?}");
                    unproven += 1;
                }
            }
        }
    }
    assert!(proven > 50 && unproven > 50, "both verdicts: {proven} and {unproven}");
}

/// ministat prints eight digits.
fn sample_is(ours: &Sample, printed: &[f64]) {
    let Sample { count, min, max, median, mean, deviation } = *ours;
    let computed = [count as f64, min, max, median, mean, deviation];
    for (index, (computed, printed)) in computed.into_iter().zip(printed).enumerate() {
        // For an even number of values ministat's median is the upper of the middle two.
        if index == 3 && count.is_multiple_of(2) {
            continue;
        }
        // A tiny deviation is a rounding error.
        let close = same(*printed, computed, 8) || (printed - computed).abs() < 1e-12;
        assert!(close, "{printed} printed, {computed} computed: {ours:?}");
    }
}

/// ministat prints six digits, and its t has three decimals. In its last column the third of them
/// is off by up to three (4.782 for 7 degrees of freedom at 99.8 %, which is 4.7853).
fn difference_is(ours: &Difference, printed: &Proven, [before, after]: [&[f64]; 2]) {
    assert!(same(printed.difference.0, ours.mean, 6), "{ours:?}");
    assert!(same(printed.pooled, ours.pooled, 6), "{ours:?}");
    let percent = ours.percent().unwrap();
    assert!(same(printed.percent.0, percent.0, 6), "{ours:?}");
    let digit = if ours.confidence == 0.998 { 0.0035 } else { 0.000_51 };
    let last = digit * ours.pooled * (1.0 / before.len() as f64 + 1.0 / after.len() as f64).sqrt();
    let close = |printed: f64, computed: f64, last: f64| {
        (printed - computed).abs() <= last || same(printed, computed, 6)
    };
    assert!(
        close(printed.difference.1, ours.half_width, last),
        "{}: {ours:?}",
        printed.difference.1
    );
    let last = 100.0 * last / ours.base.abs();
    // ministat prints a negative percentage for a negative mean.
    assert!(close(printed.percent.1.abs(), percent.1, last), "{}: {ours:?}", printed.percent.1);
}
