//! The phases of the local experiment: sizes, workers, clients.

use std::time::Duration;

use apus::PollMode;
use serde_json::{Value, json};

use super::entrant::Entrant;
use super::options::LocalOptions;
use super::report;
use super::series::{Figures, Observed, Run};
use super::sides::JOB;
use super::sides::{Details, Role};
use crate::options::{check_only, none_left};
use apus_measure::exchange::Calls;
use apus_measure::plan::{Plan, Replies, Side};
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::Error;
use apus_testbed::machine::Cores;
use apus_testbed::process::{Crew, Spawner, Task};
use apus_testbed::repeat::Repeater;

/// Time from the announcement of the common start to the start. Chosen by us: notifying one agent
/// takes a tenth of a millisecond.
const LEAD: Duration = Duration::from_millis(50);

/// The experiment on a host.
struct Bench<'a> {
    host: &'a Spawner,
    options: &'a LocalOptions,
    entrants: Vec<Entrant>,
    repeater: Repeater,
}

/// Runs all phases.
pub(super) fn run(options: &LocalOptions, host: &Spawner) -> Result<Findings, Error> {
    options.check()?;
    let cores = Cores::choose();
    let options = &LocalOptions { repetition: options.repetition.on(cores), ..options.clone() };
    let mut notes = Vec::new();
    let entrants = selected(options, &mut notes)?;
    let [workers, clients] = [options.workers, options.clients].map(LocalOptions::counts);
    let each = options.sizes.len() + workers.len() + clients.len();
    let phases = options.repetition.runs * entrants.len() * each;
    let repeater = Repeater::of(phases, Progress::of(phases));
    let bench = Bench { host, options, entrants, repeater };
    let runs = (0..options.repetition.runs)
        .map(|run| bench.run(run, &workers, &clients))
        .collect::<Result<Vec<_>, _>>()?;
    let Bench { entrants, repeater, .. } = bench;
    notes.extend(cores.note());
    notes.extend(crowded(&workers, &clients));
    let mut findings = report::findings(options, &entrants, (&workers, &clients), &runs, notes);
    repeater.account(&mut findings.outcome)?;
    Ok(findings)
}

/// Returns the selected contenders that can take part with at least one size.
fn selected(options: &LocalOptions, notes: &mut Vec<String>) -> Result<Vec<Entrant>, Error> {
    check_only(&options.only, &Entrant::names())?;
    let mut entrants = Vec::new();
    for entrant in Entrant::ALL.into_iter().filter(|entrant| entrant.is_selected(&options.only)) {
        let whys = options.sizes.iter().filter_map(|&size| sits_out(entrant, size, options));
        let whys: Vec<String> = whys.collect();
        notes.extend(whys.iter().map(|why| format!("{} sits out: {why}", entrant.name())));
        if whys.len() < options.sizes.len() {
            entrants.push(entrant);
        }
    }
    if entrants.is_empty() { Err(none_left(notes)) } else { Ok(entrants) }
}

/// Returns the reason why it cannot take part with messages of that size, if any.
fn sits_out(entrant: Entrant, size: usize, options: &LocalOptions) -> Option<String> {
    entrant.contender(Calls::OneByOne).exclusion(&options.plan(size, 1, options.repetition.poll))
}

/// Returns the note about more concurrent tasks than cores, if needed.
fn crowded(workers: &[usize], clients: &[usize]) -> Option<String> {
    let tasks = workers.iter().map(|count| 2 * count).chain(clients.iter().map(|count| count + 1));
    let most = tasks.max().filter(|tasks| !Cores::suffice_for(*tasks))?;
    Some(format!(
        "up to {most} tasks at a time have fewer cores: where they share one they sleep instead of spinning, and \
         figures contain the switches between them"
    ))
}

impl Bench<'_> {
    /// Measures everything once. The first contender changes from run to run.
    fn run(&self, run: usize, workers: &[usize], clients: &[usize]) -> Result<Run, Error> {
        let options = self.options;
        let sizes = options.sizes.iter();
        Ok(Run {
            number: run,
            sizes: sizes
                .map(|&size| {
                    self.turns(run, &format!("{size} bytes"), |entrant| {
                        let takes_part = sits_out(entrant, size, options).is_none();
                        takes_part.then(|| self.at_size(entrant, size)).transpose()
                    })
                })
                .collect::<Result<_, _>>()?,
            workers: workers
                .iter()
                .map(|&count| {
                    self.turns(run, &format!("{count} workers"), |entrant| {
                        entrant.takes_workers().then(|| self.workers(entrant, count)).transpose()
                    })
                })
                .collect::<Result<_, _>>()?,
            clients: clients
                .iter()
                .map(|&count| {
                    self.turns(run, &format!("{count} clients"), |entrant| {
                        entrant.takes_clients().then(|| self.clients(entrant, count)).transpose()
                    })
                })
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns the measurements of each contender, in row order; `None` if it sat out, or was lost.
    fn turns<T>(
        &self,
        run: usize,
        what: &str,
        measure: impl Fn(Entrant) -> Result<Option<T>, Error>,
    ) -> Result<Vec<Option<T>>, Error> {
        let count = self.entrants.len();
        let mut results: Vec<Option<T>> = (0..count).map(|_| None).collect();
        for turn in 0..count {
            let index = (run + turn) % count;
            let entrant = self.entrants[index];
            let (runs, name) = (self.options.repetition.runs, entrant.name());
            let phase = format!("{what}, run {}", run + 1);
            self.repeater.progress().step(&format!("{phase} of {runs}: {name}"));
            results[index] = self.repeater.attempt(name, &phase, || measure(entrant))?.flatten();
        }
        Ok(results)
    }

    /// Measures one client and one server: one message at a time, then many.
    fn at_size(&self, entrant: Entrant, size: usize) -> Result<Figures, Error> {
        let large = LocalOptions::is_large(size);
        let poll = self.options.repetition.poll;
        let plan = self.options.plan(size, 1, poll);
        let one = self.pairs(entrant, Calls::OneByOne, &plan, 1)?;
        let replies = if large { Replies::Short } else { Replies::Echo };
        let plan = self.options.plan(size, self.options.many(size), poll);
        let many = self.pairs(entrant, Calls::Many(replies), &plan, 1)?;
        let server = large.then_some(&many.servers[0]);
        Figures::at_size(&one.clients[0], &many.clients[0], server).checked(entrant)
    }

    /// Measures `count` workers at a time: both sides in one task, then a ping-pong between two.
    fn workers(&self, entrant: Entrant, count: usize) -> Result<Figures, Error> {
        let plan = self.options.plan(1, 1, self.poll_of(count));
        let both = |_| details_of(entrant, Calls::OneByOne, &plan, Role::Both, count > 1);
        let name = format!("{} task", entrant.name());
        let cores = |index| Cores::of_pair(index).client;
        let tasks = (0..count).map(|index| task(&name, cores(index), both(index)));
        let alone = self.together(tasks, &plan)?;
        let plan = self.options.plan(1, 1, self.poll_of(2 * count));
        let apart = self.pairs(entrant, Calls::OneByOne, &plan, count)?;
        Figures::of_workers(&alone, &apart.clients).checked(entrant)
    }

    /// Measures `count` clients of one server, with the outstanding messages of a single client in
    /// total.
    fn clients(&self, entrant: Entrant, count: usize) -> Result<Figures, Error> {
        let calls = Calls::Many(Replies::Echo);
        let size = self.options.sizes[0];
        let outstanding = self.options.many(size).div_ceil(count);
        let name = entrant.name();
        let plan = self.options.plan(size, outstanding, self.options.repetition.poll);
        let details = details_of(entrant, calls, &plan, Role::ServerOfMany, false);
        let core = Cores::choose().server;
        let mut server = self.host.start(task(&format!("{name} server"), core, details))?;
        let role = Role::Client(server.address()?);
        // The server has a dedicated core.
        let plan = Plan { poll: self.poll_of(count + 1), ..plan };
        let clients = (0..count).map(|index| {
            let details = details_of(entrant, calls, &plan, role, count > 1);
            task(&format!("{name} client"), Cores::of_client(index), details)
        });
        let clients = self.together(clients, &plan)?;
        server.stop::<Side>()?;
        Figures::of_clients(&clients).checked(entrant)
    }

    /// Runs `count` pairs of a client and a server at a time.
    fn pairs(
        &self,
        entrant: Entrant,
        calls: Calls,
        plan: &Plan,
        count: usize,
    ) -> Result<Observed, Error> {
        let name = entrant.name();
        let servers = (0..count).map(|index| {
            let details = details_of(entrant, calls, plan, Role::Server, false);
            let task = task(&format!("{name} server"), Cores::of_pair(index).server, details);
            (self.host.clone(), task)
        });
        let mut servers = Crew::start(servers)?;
        let clients = servers.addresses()?.into_iter().enumerate().map(|(index, server)| {
            let details = details_of(entrant, calls, plan, Role::Client(server), count > 1);
            task(&format!("{name} client"), Cores::of_pair(index).client, details)
        });
        let clients = self.together(clients, plan)?;
        servers.stop()?;
        Ok(Observed { clients, servers: servers.results(Duration::ZERO).all()? })
    }

    /// Returns the observations of agents that run the same task concurrently.
    fn together(&self, tasks: impl Iterator<Item = Task>, plan: &Plan) -> Result<Vec<Side>, Error> {
        let mut crew = Crew::start(tasks.map(|task| (self.host.clone(), task)))?;
        let count = crew.len();
        if count > 1 {
            crew.begin(&vec![(); count], LEAD)?;
        }
        crew.results(LEAD + plan.duration()).all()
    }

    /// Returns the poll mode of `tasks` tasks: a task that spins on a shared core keeps the others
    /// from answering.
    fn poll_of(&self, tasks: usize) -> PollMode {
        if Cores::suffice_for(tasks) { self.options.repetition.poll } else { PollMode::Block }
    }
}

/// Returns the details of an agent's task.
fn details_of(entrant: Entrant, calls: Calls, plan: &Plan, role: Role, together: bool) -> Value {
    json!(Details { entrant, calls, plan: plan.clone(), role, together })
}

fn task(name: &str, core: Option<usize>, details: Value) -> Task {
    Task { name: name.to_owned(), core, bind: None, job: JOB.to_owned(), details }
}
