//! The soak: real processes over each transport, while processes are killed, paused and restarted, links fail, addresses and
//! MTUs change, and disks are full.
//!
//! ```text
//!   client 1 ──┐      ┌── server 1     never killed: their memory and descriptors are watched
//!              ├──────┤
//!   client 2 ──┘      └── server 2     killed and restarted
//!      │                     │
//!      └──────▶ ledger ◀─────┘         files: how each call ended; which calls were executed
//!                  │
//!                audit                 after the end: compares every byte and statement with the ledger
//! ```
//!
//! Each transport has a campaign of its own, at the same time, in a network of its own. One fault of a campaign follows the other;
//! the next one begins when every pair that the fault concerned has had an answer.
//!
//! | file | content |
//! |---|---|
//! | `options`, `transport` | the options; the transports and their endpoints |
//! | `message`, `ledger` | contents of requests and replies; what is recorded about them |
//! | `times` | files of times |
//! | `client`, `server` | the processes |
//! | `heap` | what a process has allocated |
//! | `witness` | plain UDP on the same network |
//! | `place` | namespaces, or the loopback interface |
//! | `fault`, `campaign` | the faults and their order; processes of one transport under faults |
//! | `wall_clock` | its steps |
//! | `signals` | Ctrl-C |
//! | `audit`, `trend` | statements held against the ledger; growth |
//! | `findings` | rows, tables, broken promises |
//!
//! # Invariants
//!
//! - **SOAK-1** The lab signals and ends only processes that it started; namespaces and disks end with the last process in them.
//! - **SOAK-2** What a process recorded outlives its death.
//! - **SOAK-3** A fault that cannot happen at a place is named in the result.

mod audit;
mod campaign;
mod client;
mod fault;
mod findings;
mod heap;
mod ledger;
mod message;
mod options;
mod place;
mod server;
mod signals;
mod times;
mod transport;
mod trend;
mod wall_clock;
mod witness;

pub use options::Options;

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use self::campaign::{Plan, Record};
use self::client::ClientPart;
use self::place::Place;
use self::server::ServerPart;
use self::signals::Interrupt;
use self::transport::Transport;
use self::wall_clock::WallClock;
use self::witness::WitnessPart;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Task};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "lab soak";

/// Time between two updates of the progress bar.
const PROGRESS: Duration = Duration::from_millis(200);

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Part {
    Client(ClientPart),
    Server(ServerPart),
    Witness(WitnessPart),
}

/// Is a client, a server, or an end of the witness, in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let part: Part = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("an unexpected task: {error}")))?;
    match part {
        Part::Client(part) => client::drive(&part, control).map(|report| json!(report)),
        Part::Server(part) => server::serve(&part, control),
        Part::Witness(part) => witness::run(&part, control).map(|()| json!(null)),
    }
}

/// Runs the soak. `program` is an agent when its first argument is [`AGENT`](apus_testbed::process::AGENT).
///
/// # Errors
///
/// An option is out of range, a process cannot be started or ended by itself, or `--only` asks for a transport that this user
/// may not use.
pub fn run(options: &Options, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let interrupt = Interrupt::catch()?;
    let wall_clock = options.clock_steps.then(WallClock::open).transpose()?;
    let folder = tempfile::Builder::new().prefix("apus-soak-").tempdir();
    let folder = folder.doing(|| "make a folder for the ledger".to_owned())?;
    let (places, left_out) = places(options)?;
    let faults = AtomicUsize::new(0);
    let plan = Plan {
        program,
        seed: options.seed,
        duration: Duration::from_secs_f64(options.seconds),
        interrupt: &interrupt,
        wall_clock: wall_clock.as_ref(),
        faults: &faults,
    };
    let records = all(&plan, places, folder.path())?;
    findings::findings(options, &records, left_out, interrupt.is_caught())
}

/// The network of each transport.
type Places = Vec<(Transport, Place)>;

/// Makes the networks of the transports. Returns what is left out, too, and says it on standard error.
fn places(options: &Options) -> Result<(Places, Vec<String>), Error> {
    let (mut places, mut left_out) = (Vec::new(), Vec::new());
    for transport in options.transports() {
        match Place::make(transport) {
            Ok(place) => places.push((transport, place)),
            Err(error @ Error::Unavailable { .. }) if transport == Transport::Ip => {
                // Who asks for nothing else gets the reason.
                if options.transports() == [Transport::Ip] {
                    return Err(error);
                }
                left_out.push(format!("ip: {error}"));
            }
            Err(error @ Error::Unavailable { .. }) => {
                let name = transport.name();
                left_out.push(format!(
                    "{name}: no faults of links, addresses and disks, on the loopback interface: {error}"
                ));
                places.push((transport, Place::Loopback));
            }
            Err(error) => return Err(error),
        }
    }
    for each in &left_out {
        // A closed standard error is no reason to stop; the result has it, too.
        let _ = writeln!(std::io::stderr(), "left out: {each}");
    }
    if !options.clock_steps {
        let why = "clock step: the wall clock is the machine's; `--clock-steps` steps it";
        left_out.push(why.to_owned());
    }
    Ok((places, left_out))
}

/// Runs the campaigns of all transports at the same time.
fn all(plan: &Plan<'_>, places: Places, folder: &Path) -> Result<Vec<Record>, Error> {
    let progress = Progress::of_whole();
    let began = Instant::now();
    thread::scope(|scope| {
        let campaign = |(transport, place): (Transport, Place)| {
            let folder = folder.join(transport.name());
            scope.spawn(move || campaign::run(plan, transport, place, &folder))
        };
        let campaigns: Vec<_> = places.into_iter().map(campaign).collect();
        while !campaigns.iter().all(thread::ScopedJoinHandle::is_finished) {
            let share = began.elapsed().as_secs_f64() / plan.duration.as_secs_f64();
            let faults = plan.faults.load(Ordering::Relaxed);
            progress.done(share.min(1.0), &format!("{faults} faults"));
            thread::sleep(PROGRESS);
        }
        campaigns.into_iter().map(|it| it.join().expect("a campaign does not panic")).collect()
    })
}
