//! A campaign: the faults of one transport, one at a time.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::ClientReport;
use super::crew::{Crew, EACH, LONG_LIVED, MORTAL, Pairs, Plan, STEP, Watched, disk};
use super::fault::{Deck, Drawn, Fault};
use super::ledger::Ledger;
use super::network::{Side, TestNetwork};
use super::transport::Transport;
use super::wall_clock::Direction;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::fabric::INTERFACE;

/// Time within which there must be an answer after the end of a fault.
pub(super) const RECOVERY_LIMIT: Duration = Duration::from_secs(10);

/// The record of a fault.
#[derive(Clone, Debug)]
pub(super) struct FaultRecord {
    pub(super) fault: Fault,
    /// The affected process, host or clock.
    pub(super) victim: String,
    /// Start, in seconds since the start of the campaign.
    pub(super) began: f64,
    /// End, by the common monotonic clock.
    pub(super) ended: u64,
    /// The affected pairs.
    pub(super) pairs: Pairs,
}

/// The record of a campaign.
pub(super) struct CampaignRecord {
    pub(super) transport: Transport,
    pub(super) ledger: Ledger,
    pub(super) seconds: f64,
    pub(super) faults: Vec<FaultRecord>,
    /// All lives of clients, in order.
    pub(super) client_lives: Vec<u32>,
    /// All lives of each server.
    pub(super) server_lives: Vec<Vec<u32>>,
    pub(super) reports: Vec<ClientReport>,
    pub(super) watched: [Watched; EACH],
    /// Processes that did not end properly.
    pub(super) unended: Vec<String>,
}

struct Campaign<'a> {
    crew: Crew<'a>,
    ledger: Ledger,
    /// The folder that processes mount their disks on.
    disk: PathBuf,
    faults: Vec<FaultRecord>,
}

/// Runs a campaign in `folder`, which is empty.
pub(super) fn run(
    plan: &Plan<'_>,
    transport: Transport,
    network: TestNetwork,
    folder: &Path,
) -> Result<CampaignRecord, Error> {
    let disk = disk(folder);
    fs::create_dir_all(&disk).doing(|| format!("make {}", folder.display()))?;
    let crew = Crew::start(plan, transport, network, folder)?;
    let mut campaign = Campaign { crew, ledger: Ledger::at(folder), disk, faults: Vec::new() };
    campaign.run_faults()?;
    Ok(campaign.end())
}

impl Campaign<'_> {
    /// Draws faults until the time is over.
    fn run_faults(&mut self) -> Result<(), Error> {
        // Each transport has a different order.
        let seed = self.crew.plan.seed ^ (self.crew.transport as u64) << 32;
        let mut deck = Deck::new(
            seed,
            Fault::possible(&self.crew.network, self.crew.plan.wall_clock.is_some()),
        );
        while !self.is_over() {
            let drawn = deck.draw();
            self.crew.sleep(drawn.before)?;
            // A fault starts only if it can last for its whole time.
            let left = self.crew.plan.duration.saturating_sub(self.crew.began.elapsed());
            if left <= drawn.hold || self.is_over() {
                continue;
            }
            let began = self.crew.began.elapsed().as_secs_f64();
            let (victim, ended, pairs) = self.happen(drawn)?;
            self.crew.plan.faults.fetch_add(1, Ordering::Relaxed);
            self.await_recovery(ended, &pairs)?;
            let fault = drawn.fault;
            self.faults.push(FaultRecord { fault, victim, began, ended, pairs });
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.crew.plan.interrupt.is_caught() || self.crew.began.elapsed() >= self.crew.plan.duration
    }

    /// Stops all processes and returns the record.
    fn end(self) -> CampaignRecord {
        let Self { mut crew, ledger, faults, .. } = self;
        let seconds = crew.began.elapsed().as_secs_f64();
        let (reports, unended) = crew.stop();
        let Crew { transport, client_lives, server_lives, watched, .. } = crew;
        CampaignRecord {
            transport,
            ledger,
            seconds,
            faults,
            client_lives,
            server_lives,
            reports,
            watched,
            unended,
        }
    }

    /// Starts a fault and ends it. Returns the affected process, host or clock, the time of its
    /// end, and the affected pairs.
    fn happen(&mut self, drawn: Drawn) -> Result<(String, u64, Pairs), Error> {
        let Drawn { fault, side, index, hold, .. } = drawn;
        match fault {
            Fault::KillClient => {
                self.crew.clients.remove(MORTAL).agent.kill()?;
                self.crew.sleep(hold)?;
                let client = self.crew.start_client()?;
                let ended = clock::now();
                let pairs = (0..EACH).map(|server| (client.life, server)).collect();
                self.crew.clients.push(client);
                Ok(("client 2".to_owned(), ended, pairs))
            }
            Fault::KillServer | Fault::RestartServer => {
                let server = self.crew.servers.remove(MORTAL);
                if fault == Fault::KillServer {
                    server.agent.kill()?;
                } else {
                    server.agent.stop::<Value>()?;
                }
                self.crew.sleep(hold)?;
                let (server, _) =
                    self.crew.start_server(MORTAL, self.crew.addresses[MORTAL].port())?;
                self.crew.servers.push(server);
                Ok(("server 2".to_owned(), clock::now(), self.crew.pairs(None, Some(MORTAL))))
            }
            Fault::PauseClient | Fault::PauseServer => {
                let side = if fault == Fault::PauseClient { Side::Clients } else { Side::Servers };
                self.crew.members(side)[index].agent.pause()?;
                self.crew.sleep(hold)?;
                self.crew.members(side)[index].agent.resume()?;
                let ended = clock::now();
                let (victim, pairs) = self.crew.of_process(side, index);
                Ok((victim, ended, pairs))
            }
            Fault::LinkDown | Fault::Mtu | Fault::Address => {
                let host = match side {
                    Side::Clients => "clients' host",
                    Side::Servers => "servers' host",
                };
                // Lowered at one end only, the MTU would make the switch a black hole.
                let sides: &[Side] = match fault {
                    Fault::Mtu => &[Side::Clients, Side::Servers],
                    _ => &[side],
                };
                for side in sides {
                    self.of_host(fault, *side, true)?;
                }
                self.crew.sleep(hold)?;
                for side in sides {
                    self.of_host(fault, *side, false)?;
                }
                let victim = if sides.len() == 1 { host } else { "both hosts" };
                Ok((victim.to_owned(), clock::now(), self.crew.pairs(None, None)))
            }
            Fault::FullDisk => {
                let pid = self.crew.members(side)[LONG_LIVED].agent.pid().unwrap_or_default();
                let disk = PathBuf::from(format!("/proc/{pid}/root{}", self.disk.display()));
                let doing = || format!("fill {}", disk.display());
                empty(&disk).and_then(|()| fill(&disk)).doing(doing)?;
                self.crew.sleep(hold)?;
                empty(&disk).doing(doing)?;
                let ended = clock::now();
                let (victim, pairs) = self.crew.of_process(side, LONG_LIVED);
                Ok((victim, ended, pairs))
            }
            Fault::ClockStep => {
                let direction = match side {
                    Side::Clients => Direction::Forward,
                    Side::Servers => Direction::Back,
                };
                if let Some(clock) = self.crew.plan.wall_clock {
                    clock.stepped(direction, || self.crew.sleep(hold))?;
                }
                Ok((direction.name().to_owned(), clock::now(), self.crew.pairs(None, None)))
            }
        }
    }

    /// Starts or ends a fault of a host.
    fn of_host(&self, fault: Fault, side: Side, starts: bool) -> Result<(), Error> {
        let (network, interface) = (&self.crew.network, INTERFACE);
        if fault == Fault::LinkDown {
            return network.set_link(side, !starts);
        }
        if fault == Fault::Mtu {
            let mtu = if starts { 1_280 } else { 1_500 };
            return network.configure(side, &format!("link set dev {interface} mtu {mtu}\n"));
        }
        let Some(own) = network.address(side) else { return Ok(()) };
        let [a, b, c, d] = own.octets();
        let other = Ipv4Addr::new(a, b, c, d + 100);
        let (old, new) = if starts { (own, other) } else { (other, own) };
        let lines =
            format!("address del {old}/24 dev {interface}\naddress add {new}/24 dev {interface}\n");
        network.configure(side, &lines)
    }

    /// Waits until every pair has had an answer after `ended`, even after an interrupt.
    fn await_recovery(&mut self, ended: u64, pairs: &[(u32, usize)]) -> Result<(), Error> {
        let waiting = Instant::now();
        for (client, server) in pairs {
            loop {
                let last = self.ledger.last_answer(*client, *server);
                let answered = last.doing(|| "read the ledger".to_owned())? >= ended;
                if answered || waiting.elapsed() > RECOVERY_LIMIT {
                    break;
                }
                self.crew.step(STEP)?;
            }
        }
        Ok(())
    }
}

/// Fills a disk.
fn fill(disk: &Path) -> io::Result<()> {
    let zeros = [0; 1 << 16];
    let mut file = fs::File::create(disk.join("full"))?;
    loop {
        match io::Write::write_all(&mut file, &zeros) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::StorageFull => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Removes all files of a disk, while time traces may appear and disappear.
fn empty(disk: &Path) -> io::Result<()> {
    for entry in fs::read_dir(disk)? {
        match fs::remove_file(entry?.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}
