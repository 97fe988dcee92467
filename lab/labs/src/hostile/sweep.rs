//! The order of measurement: capacity, calls without an attack, calls under each attack.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::attack::{Attack, Case};
use super::attacker::{Attacked, AttackerSide};
use super::declaration::{AttackRun, findings};
use super::options::HostileOptions;
use super::sides::{Calls, HostileTask, JOB, Phase, Served, Side};
use crate::turns::Turns;
use apus_bench::contenders::keys::ThrowAwayKeys;
use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_report::runs::Runs;
use apus_testbed::error::{Doing, Error};
use apus_testbed::fabric::IsolatedHost;
use apus_testbed::machine::Cores;
use apus_testbed::process::{Agent, Spawner, Task};
use apus_testbed::repeat::Repeater;

/// Warm-up before the measurement. Chosen by us: the attacker starts in it, and has filled what it
/// can fill at its end.
const WARM: Duration = Duration::from_millis(500);

/// Duration of the measurement of capacity in each run.
const CAPACITY: Duration = Duration::from_millis(250);

/// The note for too few cores.
const SHARED_CORE: &str =
    "the attacker and the honest client share a core: latencies include the switches between them";

impl Experiment for HostileOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        self.check()?;
        match Spawner::this_program()? {
            Spawner::Processes(program) => run(self, &program),
            _ => unreachable!("this program runs as processes"),
        }
    }
}

/// The experiment on a host.
struct Lab<'a> {
    options: &'a HostileOptions,
    host: Spawner,
    cores: Cores,
    /// Honest calls as a share of the capacity.
    load: f64,
    /// Whether server, client and attacker have their own cores.
    apart: bool,
    keys: Option<ThrowAwayKeys>,
    repeater: Repeater,
}

/// Runs the experiment. `program` is an agent if its first argument is
/// [`AGENT`](apus_testbed::process::AGENT).
///
/// # Errors
///
/// An option is out of range, this user may not create a namespace, or a process failed.
pub fn run(options: &HostileOptions, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let place = IsolatedHost::up()?;
    let folder = tempfile::Builder::new().prefix("apus-hostile-").tempdir();
    let folder = folder.doing(|| "make a folder for keys".to_owned())?;
    let keys = options.sealed.then(|| ThrowAwayKeys::create(folder.path())).transpose()?;
    let cores = Cores::choose();
    let apart = Cores::suffice_for(3);
    let load = options.load(apart);
    let repetition = options.repetition.on(cores);
    let options = &HostileOptions { load: Some(load), repetition, ..options.clone() };
    let attacks = options.attacks();
    let rows = Case::of(&attacks);
    let phases = options.repetition.runs * (1 + rows.len());
    let lab = Lab {
        options,
        host: Spawner::Command { prefix: place.enter(), program: program.as_os_str().to_owned() },
        cores,
        load,
        apart,
        keys,
        repeater: Repeater::of(phases, Progress::of(phases)),
    };
    // The capacity is measured at the start of each run.
    let mut capacity = (0, None);
    let runs = Turns::Rotating.measure(options.repetition.runs, rows.len(), |run, row| {
        if capacity.0 != run {
            capacity = (run, lab.capacity(run)?);
        }
        let Some(capacity) = capacity.1 else { return Ok(None) };
        lab.calls(run, rows[row], capacity)
    })?;
    if runs.iter().all(Runs::is_empty) {
        return Err(lab.repeater.failure());
    }
    let shared = (!lab.apart).then(|| SHARED_CORE.to_owned());
    let notes = cores.note().into_iter().chain(shared).collect();
    let mut findings = findings(options, &rows, &runs, notes);
    lab.repeater.account(&mut findings.outcome)?;
    Ok(findings)
}

impl Lab<'_> {
    /// Measures the calls per second that the server can answer; `None` if the measurement was
    /// lost.
    fn capacity(&self, run: usize) -> Result<Option<f64>, Error> {
        self.attempt(run, "none", "capacity", || {
            let (server, address) = self.server()?;
            let phase = Phase::Capacity { warm: CAPACITY, measure: CAPACITY };
            let rate: f64 = self.client(address, None, phase)?.result(2 * CAPACITY)?;
            server.stop::<Served>()?;
            let said = "answered no call while its capacity was measured".to_owned();
            let silent = Error::Agent { agent: "server".to_owned(), said };
            if rate > 0.0 { Ok(rate) } else { Err(silent) }
        })
    }

    /// Measures honest calls under an attack, or without one.
    fn calls(&self, run: usize, case: Case, capacity: f64) -> Result<Option<AttackRun>, Error> {
        let measure = Duration::from_secs_f64(self.options.repetition.seconds);
        let rate = case.rate().unwrap_or(self.load * capacity);
        let seed = self.options.repetition.seed + run as u64 - 1;
        self.attempt(run, &case.name(), "calls", || {
            let (server, address) = self.server()?;
            let phase = Phase::Load { rate, size: case.size, warm: WARM, measure, seed };
            let on_client = case.attack.filter(|attack| attack.is_on_client());
            let hostile = on_client.map(|attack| self.attacker(attack, address, None, seed));
            let mut hostile = hostile.transpose()?;
            let lure = hostile.as_mut().map(Agent::address).transpose()?;
            let mut client = self.client(address, lure, phase)?;
            let victim = client.address()?;
            if hostile.is_none() {
                let attacker =
                    case.attack.map(|attack| self.attacker(attack, address, Some(victim), seed));
                hostile = attacker.transpose()?;
            }
            let calls: Calls = client.result(WARM + measure)?;
            let attacked: Option<Attacked> = hostile.map(Agent::stop).transpose()?;
            let (attacked, served) = (attacked.unwrap_or_default(), server.stop()?);
            Ok(AttackRun { rate, calls, attacked, served })
        })
    }

    /// Attempts a phase of a row.
    fn attempt<T>(
        &self,
        run: usize,
        row: &str,
        phase: &str,
        measure: impl FnMut() -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let runs = self.options.repetition.runs;
        self.repeater.progress().step(&format!("run {run} of {runs}, {phase}: {row}"));
        self.repeater.attempt(row, &format!("{phase}, run {run}"), measure)
    }

    fn server(&self) -> Result<(Agent, SocketAddr), Error> {
        let side = Side::Server { poll: self.options.repetition.poll };
        let mut server = self.start("server", self.cores.server, side)?;
        let address = server.address()?;
        Ok((server, address))
    }

    fn client(
        &self,
        server: SocketAddr,
        lure: Option<SocketAddr>,
        phase: Phase,
    ) -> Result<Agent, Error> {
        let side = Side::Client { server, alone_on_core: self.apart, lure, phase };
        self.start("client", self.cores.client, side)
    }

    /// Starts an attacker. Returns it when it attacks.
    fn attacker(
        &self,
        attack: Attack,
        server: SocketAddr,
        client: Option<SocketAddr>,
        seed: u64,
    ) -> Result<Agent, Error> {
        let sealed = self.options.sealed;
        let side = Side::Attacker(AttackerSide { attack, server, client, sealed, seed });
        let mut attacker = self.start("attacker", Cores::of_client(1), side)?;
        attacker.address()?;
        Ok(attacker)
    }

    fn start(&self, name: &str, core: Option<usize>, side: Side) -> Result<Agent, Error> {
        let details = json!(HostileTask { keys: self.keys.clone(), side });
        let (name, job) = (name.to_owned(), JOB.to_owned());
        self.host.start(Task { name, core, bind: None, job, details })
    }
}
