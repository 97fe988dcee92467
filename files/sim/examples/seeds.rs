//! Runs seeds: `seeds FROM COUNT [JOBS] [--all | --trace | --digest]`.
//!
//! Stops at the first violation and exits with status 1; with `--all`, it continues; with
//! `--trace`, it also prints the last events of each run that fails; with `--digest`, it prints the
//! digest of each run. One line of standard output for each violation: the seed, and the promise
//! that was broken.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use apus_fs_sim::check_seed;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let goes_on = words.iter().any(|word| word == "--all");
    let is_traced = words.iter().any(|word| word == "--trace");
    let has_digests = words.iter().any(|word| word == "--digest");
    let numbers: Vec<u64> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let (&[from, count] | &[from, count, _]) = &numbers[..] else {
        eprintln!("Usage: seeds FROM COUNT [JOBS] [--all | --trace | --digest]");
        return ExitCode::from(2);
    };
    let jobs = numbers.get(2).copied().unwrap_or(1);
    let (next, has_failed) = (AtomicU64::new(from), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while goes_on || !has_failed.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count {
                        break;
                    }
                    // A panic of the core is a violation, too.
                    let run = std::panic::catch_unwind(|| check_seed(seed));
                    let failure = match run {
                        Ok(Ok(totals)) => {
                            if has_digests {
                                println!("{seed} {:016x}", totals.digest);
                            }
                            continue;
                        }
                        Ok(Err(failure)) => Some(failure),
                        Err(_) => None,
                    };
                    has_failed.store(true, Ordering::Relaxed);
                    match failure {
                        Some(failure) if is_traced => println!("{failure}"),
                        Some(failure) => println!("{seed}: {}", failure.violation.promise),
                        None => println!("{seed}: panic"),
                    }
                }
            });
        }
    });
    ExitCode::from(u8::from(has_failed.load(Ordering::Relaxed)))
}
