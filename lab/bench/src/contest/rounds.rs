//! The rounds of a contest: contenders are interleaved in every run.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::definition::{COST, Contest};
use super::handoff::HANDOFF;
use super::options::ContestOptions;
use super::rate::RATE;
use super::reading::Reading;
use super::rtt::RTT;
use super::throughput::THROUGHPUT;
use crate::contenders::apus::Sharded;
use crate::contenders::contender::Contender;
use crate::contenders::keys::ThrowAwayKeys;
use crate::options::{check_only, none_left};
use apus_measure::exchange::{Pair, engine_counters};
use apus_measure::plan::{Plan, Side};
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::result::{Outcome, Ratio, Row};
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error, require};
use apus_testbed::machine::Cores;
use apus_testbed::process::{Control, Spawner, Task};
use apus_testbed::repeat::Repeater;

/// All contests.
pub const CONTESTS: [&Contest; 4] = [&RTT, &THROUGHPUT, &RATE, &HANDOFF];

/// The job of [`agent`].
pub(crate) const JOB: &str = "bench";

impl Contest {
    /// Runs the contest.
    ///
    /// # Errors
    ///
    /// An option is out of range, or a contender failed.
    pub fn run(&self, options: &ContestOptions, host: &Spawner) -> Result<Findings, Error> {
        let outcome = run(self, options, host)?;
        Ok(Findings::new(outcome, self.about, self.more).with_all(Vec::new(), Vec::new(), []))
    }
}

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
struct Details {
    experiment: String,
    contender: String,
    plan: Plan,
    /// Numbers of shards that have rows.
    shards: Vec<usize>,
    /// Address of the server; only for clients.
    server: Option<SocketAddr>,
}

/// Runs an experiment and puts the result together.
fn run(contest: &Contest, options: &ContestOptions, host: &Spawner) -> Result<Outcome, Error> {
    options.check()?;
    let shards_fit = options.shards.is_empty() || contest.has_shards;
    require(shards_fit, "shards", "only `apus-lab bench rate` compares numbers of shards")?;
    let cores = Cores::choose();
    let options = &ContestOptions { repetition: options.repetition.on(cores), ..options.clone() };
    let runs = options.repetition.runs;
    let mut plan = options.plan();
    // Removed at the end of the contest.
    let folder = options.sealed.then(tempfile::tempdir).transpose();
    let folder = folder.doing(|| "make a folder for throw-away keys".to_owned())?;
    if let Some(folder) = &folder {
        ThrowAwayKeys::create(folder.path())?;
        plan.keys = Some(folder.path().to_owned());
    }
    let mut outcome = Outcome::new(contest.name, options.config());
    let contenders = selected(contest, options, &plan, &mut outcome.notes)?;
    outcome.notes.extend(cores.note());
    if options.raw {
        outcome
            .notes
            .push("apus goes over raw IP, protocol 146, in the kernel's profile".to_owned());
    }
    outcome.config.insert("settings".to_owned(), settings(&contenders));
    let phases = runs * contenders.len();
    let repeater = Repeater::of(phases, Progress::of(phases));
    let mut pairs: Vec<Vec<(usize, Pair)>> = contenders.iter().map(|_| Vec::new()).collect();
    for run in 1..=runs {
        for turn in 0..contenders.len() {
            let index = (run - 1 + turn) % contenders.len();
            let contender = &*contenders[index];
            let name = contender.name();
            repeater.progress().step(&format!("run {run} of {runs}: {name}"));
            let pair = repeater.attempt(name, &format!("run {run}"), || {
                measure(contest, contender, (&plan, &options.shards), host, cores)
            })?;
            pairs[index].extend(pair.map(|pair| (run, pair)));
        }
    }
    summarize(contest, &contenders, &pairs, &mut outcome);
    let overflows = contenders.iter().zip(&pairs).filter_map(|(contender, pairs)| {
        let sides = pairs.iter().flat_map(|(_, pair)| [&pair.client, &pair.server]);
        let counts = sides.filter_map(|side| side.counters.get(engine_counters::OVERFLOWED));
        engine_counters::overflow_note(contender.name(), counts.sum(), &options.settings)
    });
    outcome.notes.extend(overflows);
    repeater.account(&mut outcome)?;
    Ok(outcome)
}

/// Returns the selected contenders that can take part.
fn selected(
    contest: &Contest,
    options: &ContestOptions,
    plan: &Plan,
    notes: &mut Vec<String>,
) -> Result<Vec<Box<dyn Contender>>, Error> {
    let mut contenders = (contest.contenders)(&options.shards);
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name()).collect();
    check_only(&options.only, &names)?;
    contenders.retain(|contender| {
        let asked_for = options.only.iter().any(|name| name == contender.name());
        let usual = !contender.is_on_request() || (options.sealed && contender.is_encrypted());
        asked_for || (options.only.is_empty() && usual)
    });
    contenders.retain(|contender| match contender.exclusion(plan) {
        Some(why) => {
            notes.push(format!("{} sits out: {why}", contender.name()));
            false
        }
        None => true,
    });
    if contenders.is_empty() {
        return Err(none_left(notes));
    }
    Ok(contenders)
}

/// Returns how each contender is set up.
fn settings(contenders: &[Box<dyn Contender>]) -> Value {
    let pairs = contenders.iter().map(|each| (each.name().to_owned(), json!(each.settings())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// Measures one contender in one run; it must have completed requests in the counting window.
fn measure(
    contest: &Contest,
    contender: &dyn Contender,
    (plan, shards): (&Plan, &[usize]),
    host: &Spawner,
    cores: Cores,
) -> Result<Pair, Error> {
    let cores = match contender.uses_all_cores() {
        true => Cores { client: None, server: None },
        false => cores,
    };
    let contender = contender.name();
    let task = |side: &str, server| Task {
        name: format!("{contender} {side}"),
        core: None,
        bind: None,
        job: JOB.to_owned(),
        details: json!(Details {
            experiment: contest.name.to_owned(),
            contender: contender.to_owned(),
            plan: plan.clone(),
            shards: shards.to_vec(),
            server,
        }),
    };
    let pair = Pair::measure(plan, host, cores, task)?;
    if (contest.figures)(&pair).iter().all(|(_, reading)| reading.value().is_finite()) {
        return Ok(pair);
    }
    let said = format!("completed nothing in {:?}; try more --seconds", plan.measure);
    Err(Error::Agent { agent: format!("{contender} client"), said })
}

/// Processor time of a server that does not measure it: a thread samples it at the start and at the
/// end of the measured time, approximately the client's window.
struct Load(Receiver<(u64, u64)>);

impl Load {
    fn sample(plan: &Plan) -> Self {
        let Plan { warmup, measure, .. } = *plan;
        let (sender, load) = channel();
        thread::spawn(move || {
            thread::sleep(warmup);
            let (began, cpu) = (clock::now(), clock::cpu_time());
            thread::sleep(measure);
            // The server may have ended before.
            let _ = sender.send((clock::now() - began, clock::cpu_time() - cpu));
        });
        Self(load)
    }

    /// Adds the processor time to the server's measurements, unless they include it.
    fn complete(&self, side: Side) -> Side {
        match self.0.try_recv() {
            Ok((elapsed, cpu)) if side.elapsed == 0 => Side { elapsed, cpu, ..side },
            _ => side,
        }
    }
}

/// Turns the observations into rows and ratios. Each pair has the number of its run.
fn summarize(
    contest: &Contest,
    contenders: &[Box<dyn Contender>],
    pairs: &[Vec<(usize, Pair)>],
    outcome: &mut Outcome,
) {
    let mut compared: Vec<(&str, Vec<(usize, f64)>)> = Vec::new();
    let mut efficiency: Vec<(&str, Vec<(usize, f64)>)> = Vec::new();
    for (contender, pairs) in contenders.iter().zip(pairs) {
        let name = contender.name();
        let runs: Vec<_> =
            pairs.iter().map(|(run, pair)| (*run, (contest.figures)(pair))).collect();
        let Some((_, first)) = runs.first() else { continue };
        let mut row = Row::new(name);
        for (index, &(figure, _)) in first.iter().enumerate() {
            let readings: Vec<Reading> = runs.iter().map(|(_, run)| run[index].1).collect();
            row = row.with(figure, Reading::over_runs(&readings));
            if figure == contest.compared {
                let values = runs.iter().map(|(run, figures)| (*run, figures[index].1.value()));
                compared.push((name, values.collect()));
            }
            if figure == COST {
                let values = runs.iter().map(|(run, all)| (*run, 1.0 / all[index].1.value()));
                efficiency.push((name, values.collect()));
            }
        }
        outcome.rows.push(row);
    }
    let of = |name| compared.iter().find(|(each, _)| *each == name).map(|(_, values)| values);
    for (dividend, divisor) in contest.ratios {
        if let (Some(a), Some(b)) = (of(*dividend), of(*divisor)) {
            let ratio = Ratio::paired(a, b);
            outcome.ratios.extend(ratio.map(|ratio| (format!("{dividend}/{divisor}"), ratio)));
        }
    }
    let shards = efficiency.iter().filter(|(name, _)| name.starts_with("apus shards="));
    let Some((_, one)) = shards.clone().find(|(name, _)| *name == Sharded::name_of(1)) else {
        return;
    };
    for (name, values) in shards.filter(|(name, _)| *name != Sharded::name_of(1)) {
        let ratio = Ratio::paired(values, one);
        let name = format!("{}/shards=1", name.trim_start_matches("apus "));
        outcome.ratios.extend(ratio.map(|ratio| (name, ratio)));
    }
}

/// Runs one side.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let malformed = |what: &str| Error::Peer(format!("a malformed task: {what}"));
    let details: Details = serde_json::from_value(task.details.clone())
        .map_err(|error| malformed(&error.to_string()))?;
    let contest = CONTESTS.iter().find(|each| each.name == details.experiment);
    let contest = contest.ok_or_else(|| malformed(&details.experiment))?;
    let contenders = (contest.contenders)(&details.shards);
    let contender = contenders.iter().find(|each| each.name() == details.contender);
    let contender = contender.ok_or_else(|| malformed(&details.contender))?;
    let side = match details.server {
        None => {
            let load = Load::sample(&details.plan);
            let side = contender.serve(&details.plan, control)?;
            load.complete(side)
        }
        Some(server) => contender.drive(&details.plan, server, control)?,
    };
    Ok(json!(side))
}
