//! The phases: capacity, calls without an attack, calls under each attack.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::JOB;
use super::attack::Attack;
use super::attacker::{Attacked, AttackerSide};
use super::options::Options;
use super::report::{self, Found};
use super::sides::{Calls, Details, Phase, Served, Side};
use apus_bench::contenders::keys::ThrowAwayKeys;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::{Doing, Error};
use apus_testbed::fabric::IsolatedHost;
use apus_testbed::machine::Cores;
use apus_testbed::process::{Agent, Spawner, Task};
use apus_testbed::repeat::Repeater;

/// Warm-up before anything counts. Chosen by us: the attacker starts in it, and has filled what it can fill.
const WARM: Duration = Duration::from_millis(500);

/// Duration of the measurement of capacity in each run.
const CAPACITY: Duration = Duration::from_millis(250);

/// The experiment on a host.
struct Lab<'a> {
    options: &'a Options,
    host: Spawner,
    cores: Cores,
    /// Honest calls as a share of the capacity.
    load: f64,
    /// Whether server, client and attacker have a core each.
    apart: bool,
    keys: Option<ThrowAwayKeys>,
    repeater: Repeater,
}

/// Runs all phases.
pub(super) fn run(options: &Options, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let place = IsolatedHost::up()?;
    let folder = tempfile::Builder::new().prefix("apus-hostile-").tempdir();
    let folder = folder.doing(|| "make a folder for keys".to_owned())?;
    let keys = options.sealed.then(|| ThrowAwayKeys::create(folder.path())).transpose()?;
    let cores = Cores::choose();
    let apart = Cores::suffice_for(3);
    let load = options.load(apart);
    let repetition = options.repetition.on(cores);
    let options = &Options { load: Some(load), repetition, ..options.clone() };
    let attacks = options.attacks();
    let phases = options.repetition.runs * (2 + attacks.len());
    let lab = Lab {
        options,
        host: Spawner::Command { prefix: place.enter(), program: program.as_os_str().to_owned() },
        cores,
        load,
        apart,
        keys,
        repeater: Repeater::of(phases, Progress::of(phases)),
    };
    let rows: Vec<Option<Attack>> =
        [None].into_iter().chain(attacks.into_iter().map(Some)).collect();
    let mut found: Vec<Vec<Found>> = rows.iter().map(|_| Vec::new()).collect();
    for run in 0..options.repetition.runs {
        let Some(capacity) = lab.capacity(run)? else { continue };
        for turn in 0..rows.len() {
            let row = (run + turn) % rows.len();
            found[row].extend(lab.calls(run, rows[row], capacity)?);
        }
    }
    if found.iter().all(Vec::is_empty) {
        return Err(lab.repeater.failure());
    }
    let mut outcome = report::outcome(options, &rows, &found);
    outcome.notes.extend(cores.note());
    if !lab.apart {
        let note = "the attacker and the honest client share a core: latencies contain the switches between them";
        outcome.notes.push(note.to_owned());
    }
    lab.repeater.account(&mut outcome)?;
    Ok(report::findings(outcome, &rows, &found))
}

impl Lab<'_> {
    /// Returns the calls that the server answers in a second; `None` if that cannot be had.
    fn capacity(&self, run: usize) -> Result<Option<f64>, Error> {
        self.attempt(run, report::name(None), "capacity", || {
            let (server, address) = self.server()?;
            let phase = Phase::Capacity { warm: CAPACITY, measure: CAPACITY };
            let rate: f64 = self.client(address, phase)?.result(2 * CAPACITY)?;
            server.stop::<Served>()?;
            let said = "completed nothing while its capacity was measured".to_owned();
            let silent = Error::Agent { agent: "server".to_owned(), said };
            if rate > 0.0 { Ok(rate) } else { Err(silent) }
        })
    }

    /// Returns what becomes of honest calls under an attack, or without one.
    fn calls(
        &self,
        run: usize,
        attack: Option<Attack>,
        capacity: f64,
    ) -> Result<Option<Found>, Error> {
        let measure = Duration::from_secs_f64(self.options.repetition.seconds);
        let rate = self.load * capacity;
        let seed = self.options.repetition.seed + run as u64;
        self.attempt(run, report::name(attack), "calls", || {
            let (server, address) = self.server()?;
            let phase = Phase::Load { rate, warm: WARM, measure, seed };
            let mut client = self.client(address, phase)?;
            let known = client.address()?;
            let attacker = attack.map(|attack| self.attacker(attack, address, known, seed));
            let attacker = attacker.transpose()?;
            let calls: Calls = client.result(WARM + measure)?;
            let attacked: Option<Attacked> = attacker.map(Agent::stop).transpose()?;
            let (attacked, served) = (attacked.unwrap_or_default(), server.stop()?);
            Ok(Found { run, rate, calls, attacked, served })
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
        let (run, runs) = (run + 1, self.options.repetition.runs);
        self.repeater.progress().step(&format!("run {run} of {runs}, {phase}: {row}"));
        self.repeater.attempt(row, &format!("{phase}, run {run}"), measure)
    }

    fn server(&self) -> Result<(Agent, SocketAddr), Error> {
        let side = Side::Server { poll: self.options.repetition.poll };
        let mut server = self.start("server", self.cores.server, side)?;
        let address = server.address()?;
        Ok((server, address))
    }

    fn client(&self, server: SocketAddr, phase: Phase) -> Result<Agent, Error> {
        let side = Side::Client { server, alone_on_core: self.apart, phase };
        self.start("client", self.cores.client, side)
    }

    /// Returns an attacker that has begun.
    fn attacker(
        &self,
        attack: Attack,
        server: SocketAddr,
        client: SocketAddr,
        seed: u64,
    ) -> Result<Agent, Error> {
        let sealed = self.options.sealed;
        let side = Side::Attacker(AttackerSide { attack, server, client, sealed, seed });
        let mut attacker = self.start("attacker", Cores::of_client(1), side)?;
        attacker.address()?;
        Ok(attacker)
    }

    fn start(&self, name: &str, core: Option<usize>, side: Side) -> Result<Agent, Error> {
        let details = json!(Details { keys: self.keys.clone(), side });
        let (name, job) = (name.to_owned(), JOB.to_owned());
        self.host.start(Task { name, core, bind: None, job, details })
    }
}
