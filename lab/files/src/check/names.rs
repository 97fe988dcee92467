//! One name that all mounts create and remove.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::place::{CheckError, Places, Worker, doing};
use super::{CheckReport, CheckSettings};

/// A creation or removal that succeeded.
#[derive(Clone, Copy, Debug)]
struct Success {
    invoked: u64,
    returned: u64,
    creates: bool,
}

pub(super) fn run(settings: &CheckSettings, places: &Places) -> Result<CheckReport, CheckError> {
    let mut report = CheckReport::default();
    let all = (settings.mounts.len() * settings.workers).max(1) as u64;
    let each = settings.operations.div_ceil(all);
    let successes = places.work(settings.workers, |worker| {
        work(places, worker, each, settings.seed ^ worker.index as u64)
    })?;
    report.operations += each * all;
    let mut successes: Vec<_> = successes.into_iter().flatten().collect();
    let created = successes.iter().filter(|success| success.creates).count();
    let removed = successes.len() - created;
    let exists = places.first().join("name").exists();
    if created != removed + usize::from(exists) {
        report.violations.push(format!(
            "a name is created once and removed once: {created} creations, {removed} removals, and it {}",
            if exists { "exists" } else { "does not exist" }
        ));
    }
    // Between two successes of one kind, one entirely before the other, a success of the other kind
    // must be possible.
    successes.sort_by_key(|success| success.returned);
    for (index, one) in successes.iter().enumerate() {
        let Some(next) = successes[index + 1..].iter().find(|next| next.invoked > one.returned)
        else {
            continue;
        };
        let between = successes.iter().any(|other| {
            other.creates != one.creates
                && other.returned > one.invoked
                && other.invoked < next.returned
        });
        if next.creates == one.creates && !between {
            report
                .violations
                .push(format!("a name is created once and removed once: {one:?}, then {next:?}"));
        }
    }
    Ok(report)
}

fn work(
    places: &Places,
    worker: &Worker,
    operations: u64,
    seed: u64,
) -> Result<Vec<Success>, CheckError> {
    let mut random = Pcg64::seed_from_u64(seed);
    let path = worker.directory.join("name");
    let mut successes = Vec::new();
    for _ in 0..operations {
        let creates = random.random_ratio(1, 2);
        let invoked = places.moment().0;
        let result = if creates {
            OpenOptions::new().write(true).create_new(true).open(&path).map(drop)
        } else {
            fs::remove_file(&path)
        };
        let returned = places.moment().0;
        match result {
            Ok(()) => successes.push(Success { invoked, returned, creates }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && creates => {}
            Err(error) if error.kind() == ErrorKind::NotFound && !creates => {}
            Err(error) => {
                return Err(doing(if creates { "create" } else { "remove" }, &path)(error));
            }
        }
    }
    Ok(successes)
}
