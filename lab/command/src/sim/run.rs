//! `apus-lab sim run`: messages of a workload in a simulated fabric.

use std::cell::RefCell;
use std::env;
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use apus_report::progress::Progress;
use apus_sweep::report::findings;
use apus_sweep::{
    Choice, Done, Lines, OptionsError, Plan, PlanPoint, PointRecord, Shard, Status, SweepOptions,
    execute,
};
use clap::Args;

use apus_command_line::experiment::Results;
use apus_command_line::failure::Failure;

// The options explain the command.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    #[command(flatten)]
    options: SweepOptions,
    /// Threads: points run at the same time and, if there are fewer points than threads, each in
    /// several of them [default: the number of processors]. The results are the same
    #[arg(long, value_name = "THREADS", allow_negative_numbers = true)]
    jobs: Option<usize>,
    /// Keep one JSON object per point in this file, and run only what it lacks; `{shard}` in
    /// the name is the shard's number
    #[arg(long, value_name = "FILE")]
    out: Option<String>,
    /// Which part of the points runs here: I/N, from 0/N; `auto` takes it from the environment, and
    /// `auto/N` takes I from it. Without this and with --out, the environment is asked:
    /// SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX (needs auto/N), OMPI_COMM_WORLD_RANK, PMI_RANK
    #[arg(long, value_name = "I/N", requires = "out")]
    shard: Option<Choice>,
    #[command(flatten)]
    results: Results,
    /// Show no progress
    #[arg(long)]
    quiet: bool,
}

/// Runs the simulation and shows the result.
pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let plan = Plan::new(&arguments.options).map_err(|error| option_failure(&error))?;
    let shard = shard(arguments)?;
    let mut lines = match &arguments.out {
        None => None,
        Some(name) => {
            let path = PathBuf::from(name.replace("{shard}", &shard.index().to_string()));
            let lines = Lines::open(&path, &plan.name);
            Some(lines.map_err(|error| wrong("--out", &error))?)
        }
    };
    let jobs = jobs(arguments)?;
    let results = arguments.results.open()?;
    let points: Vec<&PlanPoint> = plan
        .points
        .iter()
        .filter(|point| shard.contains(point.index))
        .filter(|point| lines.as_ref().is_none_or(|lines| !lines.contains(point.index)))
        .collect();
    let mut done = simulate(&plan, &points, jobs, arguments.quiet, &mut lines)?;
    done.sort_by_key(|done| done.record.index);
    let ran = || done.iter().map(|done| done.record.clone());
    let records: Vec<PointRecord> = match &lines {
        None => ran().collect(),
        Some(lines) => lines.records().cloned().collect(),
    };
    let mut findings = findings(&records, &done);
    if records.len() < plan.points.len() {
        findings.outcome.notes.push(format!(
            "these are {} of {} points; `apus-lab sim merge` puts them together with the others",
            records.len(),
            plan.points.len()
        ));
    }
    results.show(&findings)
}

/// Runs the points, and saves each as soon as it completes.
fn simulate(
    plan: &Plan,
    points: &[&PlanPoint],
    jobs: usize,
    quiet: bool,
    lines: &mut Option<Lines>,
) -> Result<Vec<Done>, Failure> {
    if let Some(lines) = lines {
        // A shard without points still creates its file.
        lines.add([]).map_err(|error| Failure::Work(error.to_string()))?;
    }
    let (progress, began) = (Progress::of_whole(), Instant::now());
    let mut watch = |status: Status| {
        if !quiet {
            let rate = status.packets as f64 / began.elapsed().as_secs_f64().max(1e-9) / 1e6;
            let Status { share, points: done, .. } = status;
            let of = points.len();
            let what = format!("{done}/{of} points, {rate:.2} M packets/s");
            let waits =
                if share >= 1.0 && done < of { ", waiting for the last messages" } else { "" };
            progress.done(share, &(what + waits));
        }
    };
    let done = RefCell::new(Vec::new());
    execute(plan, points, jobs, &mut watch, &mut |each| {
        if let Some(lines) = lines {
            lines.add([each.record.clone()])?;
        }
        done.borrow_mut().push(each);
        Ok(())
    })
    .map_err(|error: apus_sweep::LinesError| Failure::Work(error.to_string()))?;
    Ok(done.into_inner())
}

/// Returns the part of the plan to run here.
fn shard(arguments: &RunArguments) -> Result<Shard, Failure> {
    let environment = |name: &str| env::var(name).ok();
    let found = match arguments.shard {
        Some(choice) => choice.resolve(environment),
        None if arguments.out.is_some() => {
            Shard::from_environment(environment, None).map(|found| found.unwrap_or(Shard::ALL))
        }
        None => Ok(Shard::ALL),
    };
    found.map_err(|error| wrong("--shard", &error))
}

/// Threads of all points together.
fn jobs(arguments: &RunArguments) -> Result<usize, Failure> {
    match arguments.jobs {
        Some(jobs @ 1..=4096) => Ok(jobs),
        Some(_) => Err(wrong("--jobs", &"1 to 4096 threads simulate; try 4")),
        None => Ok(thread::available_parallelism().map_or(1, usize::from)),
    }
}

fn wrong(argument: &str, problem: &impl ToString) -> Failure {
    Failure::Argument { argument: argument.to_owned(), problem: problem.to_string() }
}

/// Options of the simulator have the names of the arguments.
fn option_failure(error: &OptionsError) -> Failure {
    wrong(&format!("--{}", error.option), &error.problem)
}
