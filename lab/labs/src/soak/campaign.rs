//! A campaign: the processes of one transport, and its faults, one at a time.

use std::fs;
use std::io;
use std::mem;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{ClientReport, ClientTask};
use super::fault::{Deck, Drawn, Fault};
use super::ledger::Ledger;
use super::network::{Side, TestNetwork};
use super::process::{JOB, ProcessRole};
use super::server::ServerTask;
use super::signals::Interrupt;
use super::transport::Transport;
use super::trend::ProcessSample;
use super::wall_clock::{Direction, WallClock};
use super::witness::WitnessTask;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::fabric::INTERFACE;
use apus_testbed::process::{Agent, Task};

/// Number of clients, and of servers.
const EACH: usize = 2;

/// Index of the process of each side that is never killed, and of the other.
const LONG_LIVED: usize = 0;
const MORTAL: usize = 1;

/// Time within which there must be an answer after the end of a fault.
pub(super) const RECOVERY_LIMIT: Duration = Duration::from_secs(10);

/// Time between two checks for an answer, an interrupt, or the end.
const STEP: Duration = Duration::from_millis(10);

/// Time between two samples of the long-lived processes.
const SAMPLING: Duration = Duration::from_millis(250);

/// The common parameters of all campaigns of a soak.
pub(super) struct Plan<'a> {
    pub(super) program: &'a Path,
    pub(super) seed: u64,
    pub(super) duration: Duration,
    pub(super) interrupt: &'a Interrupt,
    /// Set if the wall clock is stepped as well.
    pub(super) wall_clock: Option<&'a WallClock>,
    /// Number of faults so far, in all campaigns.
    pub(super) faults: &'a AtomicUsize,
}

/// Pairs of a life of a client and a server that it calls.
pub(super) type Pairs = Vec<(u32, usize)>;

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

/// The long-lived process of a side.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) name: &'static str,
    pub(super) life: u32,
    pub(super) samples: Vec<ProcessSample>,
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

/// A process and its life.
struct Member {
    life: u32,
    agent: Agent,
}

struct Campaign<'a> {
    plan: &'a Plan<'a>,
    network: TestNetwork,
    /// The folder of the ledger; the small disk of each process is mounted in it.
    folder: PathBuf,
    began: Instant,
    servers: Vec<Member>,
    addresses: Vec<SocketAddr>,
    clients: Vec<Member>,
    /// Plain UDP between the hosts, if there are two.
    witness: Vec<Agent>,
    lives: u32,
    sampled: Instant,
    record: CampaignRecord,
}

/// Runs a campaign in `folder`, which is empty.
pub(super) fn run(
    plan: &Plan<'_>,
    transport: Transport,
    network: TestNetwork,
    folder: &Path,
) -> Result<CampaignRecord, Error> {
    fs::create_dir_all(disk(folder)).doing(|| format!("make {}", folder.display()))?;
    let watched = |name| Watched { name, life: 0, samples: Vec::new() };
    let record = CampaignRecord {
        transport,
        ledger: Ledger::at(folder),
        seconds: 0.0,
        faults: Vec::new(),
        client_lives: Vec::new(),
        server_lives: vec![Vec::new(); EACH],
        reports: Vec::new(),
        watched: [watched("client"), watched("server")],
        unended: Vec::new(),
    };
    let now = Instant::now();
    let mut campaign = Campaign {
        plan,
        network,
        folder: folder.to_owned(),
        began: now,
        servers: Vec::new(),
        addresses: Vec::new(),
        clients: Vec::new(),
        witness: Vec::new(),
        lives: 0,
        sampled: now,
        record,
    };
    campaign.start()?;
    campaign.faults()?;
    campaign.end()
}

/// Returns the folder that processes mount their disks on.
fn disk(folder: &Path) -> PathBuf {
    folder.join("disk")
}

impl Campaign<'_> {
    fn start(&mut self) -> Result<(), Error> {
        for index in 0..EACH {
            let (server, address) = self.start_server(index, 0)?;
            self.servers.push(server);
            self.addresses.push(address);
        }
        for _ in 0..EACH {
            let client = self.start_client()?;
            self.clients.push(client);
        }
        if self.network.has_hosts() {
            self.witness = self.start_witness()?;
        }
        self.began = Instant::now();
        Ok(())
    }

    /// Draws faults until the time is over.
    fn faults(&mut self) -> Result<(), Error> {
        // Each transport has a different order.
        let seed = self.plan.seed ^ (self.record.transport as u64) << 32;
        let mut deck =
            Deck::new(seed, Fault::possible(&self.network, self.plan.wall_clock.is_some()));
        while !self.is_over() {
            let drawn = deck.draw();
            self.sleep(drawn.before)?;
            // A fault starts only if it can last for its whole time.
            let left = self.plan.duration.saturating_sub(self.began.elapsed());
            if left <= drawn.hold || self.is_over() {
                continue;
            }
            let began = self.began.elapsed().as_secs_f64();
            let (victim, ended, pairs) = self.happen(drawn)?;
            self.plan.faults.fetch_add(1, Ordering::Relaxed);
            self.await_recovery(ended, &pairs)?;
            let fault = drawn.fault;
            self.record.faults.push(FaultRecord { fault, victim, began, ended, pairs });
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.plan.interrupt.is_caught() || self.began.elapsed() >= self.plan.duration
    }

    /// Stops all processes, the clients first.
    fn end(mut self) -> Result<CampaignRecord, Error> {
        self.record.seconds = self.began.elapsed().as_secs_f64();
        for client in mem::take(&mut self.clients) {
            match client.agent.stop::<ClientReport>() {
                Ok(report) => self.record.reports.push(report),
                Err(error) => self.record.unended.push(error.to_string()),
            }
        }
        for server in mem::take(&mut self.servers) {
            if let Err(error) = server.agent.stop::<Value>() {
                self.record.unended.push(error.to_string());
            }
        }
        for end in self.witness.into_iter().rev() {
            if let Err(error) = end.stop::<Value>() {
                self.record.unended.push(error.to_string());
            }
        }
        Ok(self.record)
    }

    /// Starts a fault and ends it. Returns the affected process, host or clock, the time of its
    /// end, and the affected pairs.
    fn happen(&mut self, drawn: Drawn) -> Result<(String, u64, Pairs), Error> {
        let Drawn { fault, side, index, hold, .. } = drawn;
        match fault {
            Fault::KillClient => {
                self.clients.remove(MORTAL).agent.kill()?;
                self.sleep(hold)?;
                let client = self.start_client()?;
                let ended = clock::now();
                let pairs = (0..EACH).map(|server| (client.life, server)).collect();
                self.clients.push(client);
                Ok(("client 2".to_owned(), ended, pairs))
            }
            Fault::KillServer | Fault::RestartServer => {
                let server = self.servers.remove(MORTAL);
                if fault == Fault::KillServer {
                    server.agent.kill()?;
                } else {
                    server.agent.stop::<Value>()?;
                }
                self.sleep(hold)?;
                let (server, _) = self.start_server(MORTAL, self.addresses[MORTAL].port())?;
                self.servers.push(server);
                Ok(("server 2".to_owned(), clock::now(), self.pairs(None, Some(MORTAL))))
            }
            Fault::PauseClient | Fault::PauseServer => {
                let side = if fault == Fault::PauseClient { Side::Clients } else { Side::Servers };
                self.members(side)[index].agent.pause()?;
                self.sleep(hold)?;
                self.members(side)[index].agent.resume()?;
                let ended = clock::now();
                let (victim, pairs) = self.of_process(side, index);
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
                self.sleep(hold)?;
                for side in sides {
                    self.of_host(fault, *side, false)?;
                }
                let victim = if sides.len() == 1 { host } else { "both hosts" };
                Ok((victim.to_owned(), clock::now(), self.pairs(None, None)))
            }
            Fault::FullDisk => {
                let pid = self.members(side)[LONG_LIVED].agent.pid().unwrap_or_default();
                let disk =
                    PathBuf::from(format!("/proc/{pid}/root{}", disk(&self.folder).display()));
                let doing = || format!("fill {}", disk.display());
                empty(&disk).and_then(|()| fill(&disk)).doing(doing)?;
                self.sleep(hold)?;
                empty(&disk).doing(doing)?;
                let ended = clock::now();
                let (victim, pairs) = self.of_process(side, LONG_LIVED);
                Ok((victim, ended, pairs))
            }
            Fault::ClockStep => {
                let direction = match side {
                    Side::Clients => Direction::Forward,
                    Side::Servers => Direction::Back,
                };
                if let Some(clock) = self.plan.wall_clock {
                    clock.stepped(direction, || self.sleep(hold))?;
                }
                Ok((direction.name().to_owned(), clock::now(), self.pairs(None, None)))
            }
        }
    }

    const fn members(&mut self, side: Side) -> &mut Vec<Member> {
        match side {
            Side::Clients => &mut self.clients,
            Side::Servers => &mut self.servers,
        }
    }

    /// Returns the name of a process, and its pairs.
    fn of_process(&self, side: Side, index: usize) -> (String, Pairs) {
        match side {
            Side::Clients => (format!("client {}", index + 1), self.pairs(Some(index), None)),
            Side::Servers => (format!("server {}", index + 1), self.pairs(None, Some(index))),
        }
    }

    /// Starts or ends a fault of a host.
    fn of_host(&self, fault: Fault, side: Side, starts: bool) -> Result<(), Error> {
        let (network, interface) = (&self.network, INTERFACE);
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

    /// Returns the pairs of one client or all, and one server or all.
    fn pairs(&self, client: Option<usize>, server: Option<usize>) -> Pairs {
        let clients = (0..self.clients.len()).filter(|index| client.is_none_or(|it| it == *index));
        let servers = || (0..EACH).filter(|index| server.is_none_or(|it| it == *index));
        clients
            .flat_map(|index| servers().map(move |server| (index, server)))
            .map(|(index, server)| (self.clients[index].life, server))
            .collect()
    }

    /// Waits until every pair has had an answer after `ended`, even after an interrupt.
    fn await_recovery(&mut self, ended: u64, pairs: &[(u32, usize)]) -> Result<(), Error> {
        let waiting = Instant::now();
        for (client, server) in pairs {
            loop {
                let last = self.record.ledger.last_answer(*client, *server);
                let answered = last.doing(|| "read the ledger".to_owned())? >= ended;
                if answered || waiting.elapsed() > RECOVERY_LIMIT {
                    break;
                }
                self.step(STEP)?;
            }
        }
        Ok(())
    }

    /// Sleeps while all processes run, and samples the long-lived ones. An interrupt ends the sleep
    /// early.
    fn sleep(&mut self, duration: Duration) -> Result<(), Error> {
        let began = Instant::now();
        loop {
            let left = duration.saturating_sub(began.elapsed());
            if left.is_zero() || self.plan.interrupt.is_caught() {
                return Ok(());
            }
            self.step(left.min(STEP))?;
        }
    }

    /// Sleeps for a moment and checks the processes.
    fn step(&mut self, duration: Duration) -> Result<(), Error> {
        thread::sleep(duration);
        self.sample();
        for member in self.clients.iter_mut().chain(&mut self.servers) {
            // Fails if the process has ended.
            member.agent.sleep(Duration::ZERO)?;
        }
        for end in &mut self.witness {
            end.sleep(Duration::ZERO)?;
        }
        Ok(())
    }

    fn sample(&mut self) {
        if self.sampled.elapsed() < SAMPLING {
            return;
        }
        self.sampled = Instant::now();
        let seconds = self.began.elapsed().as_secs_f64();
        let members = [&self.clients, &self.servers].map(|members| members.get(LONG_LIVED));
        for (watched, member) in self.record.watched.iter_mut().zip(members) {
            watched.life = member.map_or(watched.life, |member| member.life);
            let pid = member.and_then(|member| member.agent.pid());
            watched.samples.extend(pid.and_then(|pid| ProcessSample::of(pid, seconds)));
        }
    }

    fn traces(&self) -> Option<PathBuf> {
        self.network.has_namespaces().then(|| disk(&self.folder))
    }

    fn start_server(&mut self, index: usize, port: u16) -> Result<(Member, SocketAddr), Error> {
        let life = self.next_life();
        let task = ServerTask {
            transport: self.record.transport,
            ledger: self.folder.clone(),
            life,
            at: self.network.listen(),
            port,
            traces: self.traces(),
        };
        let name = format!("server {} (life {life})", index + 1);
        let mut agent = self.start_agent(Side::Servers, &name, ProcessRole::Server(task))?;
        let address = self.network.server(agent.address()?.port());
        self.record.server_lives[index].push(life);
        Ok((Member { life, agent }, address))
    }

    fn start_client(&mut self) -> Result<Member, Error> {
        let life = self.next_life();
        let task = ClientTask {
            transport: self.record.transport,
            ledger: self.folder.clone(),
            life,
            seed: self.plan.seed,
            at: self.network.listen(),
            servers: self.addresses.clone(),
            traces: self.traces(),
        };
        let name = format!("client (life {life})");
        let mut agent = self.start_agent(Side::Clients, &name, ProcessRole::Client(task))?;
        agent.address()?;
        self.record.client_lives.push(life);
        Ok(Member { life, agent })
    }

    /// Starts both ends of the witness.
    fn start_witness(&self) -> Result<Vec<Agent>, Error> {
        let start = |side, name, task| -> Result<(Agent, u16), Error> {
            let mut agent = self.start_agent(side, name, ProcessRole::Witness(task))?;
            let port = agent.address()?.port();
            Ok((agent, port))
        };
        let (echo, port) = start(Side::Servers, "echo", WitnessTask::Echo)?;
        let (ledger, at) = (self.folder.clone(), self.network.server(port));
        let (probe, _) = start(Side::Clients, "probe", WitnessTask::Probe { ledger, echo: at })?;
        Ok(vec![echo, probe])
    }

    fn start_agent(&self, side: Side, name: &str, role: ProcessRole) -> Result<Agent, Error> {
        let name = format!("{} {name}", self.record.transport.name());
        let spawner = self.network.spawner(side, self.plan.program, self.traces().as_deref())?;
        let (job, details) = (JOB.to_owned(), json!(role));
        spawner.start(Task { name, core: None, bind: None, job, details })
    }

    fn next_life(&mut self) -> u32 {
        self.lives += 1;
        self.lives
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
