//! The campaigns of all transports, at the same time.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::campaign::{self, CampaignRecord};
use super::crew::Plan;
use super::declaration::findings;
use super::network::TestNetwork;
use super::options::SoakOptions;
use super::signals::Interrupt;
use super::transport::Transport;
use super::wall_clock::WallClock;
use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::Spawner;

/// Time between two updates of the progress bar.
const PROGRESS: Duration = Duration::from_millis(200);

impl Experiment for SoakOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        self.check()?;
        match Spawner::this_program()? {
            Spawner::Processes(program) => run(self, &program),
            _ => unreachable!("this program runs as processes"),
        }
    }
}

/// Runs the soak. `program` is an agent if its first argument is
/// [`AGENT`](apus_testbed::process::AGENT).
///
/// # Errors
///
/// An option is out of range, a process cannot be started or ended unexpectedly, or this user may
/// not use the only transport in `--only`.
pub fn run(options: &SoakOptions, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let interrupt = Interrupt::catch()?;
    let wall_clock = options.clock_steps.then(WallClock::open).transpose()?;
    let folder = tempfile::Builder::new().prefix("apus-soak-").tempdir();
    let folder = folder.doing(|| "make a folder for the ledger".to_owned())?;
    let (networks, left_out) = networks(options)?;
    let faults = AtomicUsize::new(0);
    let plan = Plan {
        program,
        seed: options.seed,
        duration: Duration::from_secs_f64(options.seconds),
        interrupt: &interrupt,
        wall_clock: wall_clock.as_ref(),
        faults: &faults,
    };
    let records = all(&plan, networks, folder.path())?;
    findings(options, &records, &left_out, interrupt.is_caught())
}

/// The network of each transport.
type Networks = Vec<(Transport, TestNetwork)>;

/// Creates the networks of the transports. Also returns what is left out, and reports it on
/// standard error.
fn networks(options: &SoakOptions) -> Result<(Networks, Vec<String>), Error> {
    let (mut networks, mut left_out) = (Vec::new(), Vec::new());
    for transport in options.transports() {
        match TestNetwork::make(transport) {
            Ok(network) => networks.push((transport, network)),
            Err(error @ Error::Unavailable { .. }) if transport == Transport::Ip => {
                // Without another transport there is no result.
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
                networks.push((transport, TestNetwork::Loopback));
            }
            Err(error) => return Err(error),
        }
    }
    for each in &left_out {
        // A closed standard error is no reason to stop; the result has the same text.
        let _ = writeln!(std::io::stderr(), "left out: {each}");
    }
    if !options.clock_steps {
        let why = "clock step: the wall clock is the machine's; `--clock-steps` steps it";
        left_out.push(why.to_owned());
    }
    Ok((networks, left_out))
}

/// Runs the campaigns of all transports at the same time.
fn all(plan: &Plan<'_>, networks: Networks, folder: &Path) -> Result<Vec<CampaignRecord>, Error> {
    let progress = Progress::of_whole();
    let began = Instant::now();
    thread::scope(|scope| {
        let campaign = |(transport, network): (Transport, TestNetwork)| {
            let folder = folder.join(transport.name());
            scope.spawn(move || campaign::run(plan, transport, network, &folder))
        };
        let campaigns: Vec<_> = networks.into_iter().map(campaign).collect();
        while !campaigns.iter().all(thread::ScopedJoinHandle::is_finished) {
            let share = began.elapsed().as_secs_f64() / plan.duration.as_secs_f64();
            let faults = plan.faults.load(Ordering::Relaxed);
            progress.done(share.min(1.0), &format!("{faults} faults"));
            thread::sleep(PROGRESS);
        }
        campaigns.into_iter().map(|it| it.join().expect("a campaign does not panic")).collect()
    })
}
