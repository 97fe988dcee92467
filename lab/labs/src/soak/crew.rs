//! The processes of a campaign: starts, watches and stops them.

use std::mem;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{ClientReport, ClientTask};
use super::network::{Side, TestNetwork};
use super::process::{JOB, ProcessRole};
use super::server::ServerTask;
use super::signals::Interrupt;
use super::transport::Transport;
use super::trend::ProcessSample;
use super::wall_clock::WallClock;
use super::witness::WitnessTask;
use apus_testbed::error::Error;
use apus_testbed::process::{Agent, Task};

/// Number of clients, and of servers.
pub(super) const EACH: usize = 2;

/// Index of the process of each side that is never killed, and of the other.
pub(super) const LONG_LIVED: usize = 0;
pub(super) const MORTAL: usize = 1;

/// Time between two checks for an answer, an interrupt, or the end.
pub(super) const STEP: Duration = Duration::from_millis(10);

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

/// The long-lived process of a side.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    pub(super) name: &'static str,
    pub(super) life: u32,
    pub(super) samples: Vec<ProcessSample>,
}

/// A process and its life.
pub(super) struct Member {
    pub(super) life: u32,
    pub(super) agent: Agent,
}

/// The processes of a campaign.
pub(super) struct Crew<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) transport: Transport,
    pub(super) network: TestNetwork,
    /// The folder of the ledger; the small disk of each process is mounted in it.
    folder: PathBuf,
    pub(super) began: Instant,
    pub(super) servers: Vec<Member>,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) clients: Vec<Member>,
    /// Plain UDP between the hosts, if there are two.
    witness: Vec<Agent>,
    lives: u32,
    sampled: Instant,
    /// All lives of clients, in order.
    pub(super) client_lives: Vec<u32>,
    /// All lives of each server.
    pub(super) server_lives: Vec<Vec<u32>>,
    pub(super) watched: [Watched; EACH],
}

impl<'a> Crew<'a> {
    /// Starts all processes, with their ledger in `folder`.
    pub(super) fn start(
        plan: &'a Plan<'a>,
        transport: Transport,
        network: TestNetwork,
        folder: &Path,
    ) -> Result<Self, Error> {
        let watched = |name| Watched { name, life: 0, samples: Vec::new() };
        let now = Instant::now();
        let mut crew = Self {
            plan,
            transport,
            network,
            folder: folder.to_owned(),
            began: now,
            servers: Vec::new(),
            addresses: Vec::new(),
            clients: Vec::new(),
            witness: Vec::new(),
            lives: 0,
            sampled: now,
            client_lives: Vec::new(),
            server_lives: vec![Vec::new(); EACH],
            watched: [watched("client"), watched("server")],
        };
        crew.start_all()?;
        Ok(crew)
    }

    fn start_all(&mut self) -> Result<(), Error> {
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

    /// Stops all processes, the clients first. Returns the reports of the clients, and the errors
    /// of processes that did not end properly.
    pub(super) fn stop(&mut self) -> (Vec<ClientReport>, Vec<String>) {
        let (mut reports, mut unended) = (Vec::new(), Vec::new());
        for client in mem::take(&mut self.clients) {
            match client.agent.stop::<ClientReport>() {
                Ok(report) => reports.push(report),
                Err(error) => unended.push(error.to_string()),
            }
        }
        let servers = mem::take(&mut self.servers).into_iter().map(|server| server.agent);
        for agent in servers.chain(mem::take(&mut self.witness).into_iter().rev()) {
            if let Err(error) = agent.stop::<Value>() {
                unended.push(error.to_string());
            }
        }
        (reports, unended)
    }

    pub(super) const fn members(&mut self, side: Side) -> &mut Vec<Member> {
        match side {
            Side::Clients => &mut self.clients,
            Side::Servers => &mut self.servers,
        }
    }

    /// Returns the name of a process, and its pairs.
    pub(super) fn of_process(&self, side: Side, index: usize) -> (String, Pairs) {
        match side {
            Side::Clients => (format!("client {}", index + 1), self.pairs(Some(index), None)),
            Side::Servers => (format!("server {}", index + 1), self.pairs(None, Some(index))),
        }
    }

    /// Returns the pairs of one client or all, and one server or all.
    pub(super) fn pairs(&self, client: Option<usize>, server: Option<usize>) -> Pairs {
        let clients = (0..self.clients.len()).filter(|index| client.is_none_or(|it| it == *index));
        let servers = || (0..EACH).filter(|index| server.is_none_or(|it| it == *index));
        clients
            .flat_map(|index| servers().map(move |server| (index, server)))
            .map(|(index, server)| (self.clients[index].life, server))
            .collect()
    }

    /// Sleeps while all processes run, and samples the long-lived ones. An interrupt ends the sleep
    /// early.
    pub(super) fn sleep(&mut self, duration: Duration) -> Result<(), Error> {
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
    pub(super) fn step(&mut self, duration: Duration) -> Result<(), Error> {
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
        for (watched, member) in self.watched.iter_mut().zip(members) {
            watched.life = member.map_or(watched.life, |member| member.life);
            let pid = member.and_then(|member| member.agent.pid());
            watched.samples.extend(pid.and_then(|pid| ProcessSample::of(pid, seconds)));
        }
    }

    fn traces(&self) -> Option<PathBuf> {
        self.network.has_namespaces().then(|| disk(&self.folder))
    }

    pub(super) fn start_server(
        &mut self,
        index: usize,
        port: u16,
    ) -> Result<(Member, SocketAddr), Error> {
        let life = self.next_life();
        let task = ServerTask {
            transport: self.transport,
            ledger: self.folder.clone(),
            life,
            at: self.network.listen(),
            port,
            traces: self.traces(),
        };
        let name = format!("server {} (life {life})", index + 1);
        let mut agent = self.start_agent(Side::Servers, &name, &ProcessRole::Server(task))?;
        let address = self.network.server(agent.address()?.port());
        self.server_lives[index].push(life);
        Ok((Member { life, agent }, address))
    }

    pub(super) fn start_client(&mut self) -> Result<Member, Error> {
        let life = self.next_life();
        let task = ClientTask {
            transport: self.transport,
            ledger: self.folder.clone(),
            life,
            seed: self.plan.seed,
            at: self.network.listen(),
            servers: self.addresses.clone(),
            traces: self.traces(),
        };
        let name = format!("client (life {life})");
        let mut agent = self.start_agent(Side::Clients, &name, &ProcessRole::Client(task))?;
        agent.address()?;
        self.client_lives.push(life);
        Ok(Member { life, agent })
    }

    /// Starts both ends of the witness.
    fn start_witness(&self) -> Result<Vec<Agent>, Error> {
        let start = |side, name, task| -> Result<(Agent, u16), Error> {
            let mut agent = self.start_agent(side, name, &ProcessRole::Witness(task))?;
            let port = agent.address()?.port();
            Ok((agent, port))
        };
        let (echo, port) = start(Side::Servers, "echo", WitnessTask::Echo)?;
        let (ledger, at) = (self.folder.clone(), self.network.server(port));
        let (probe, _) = start(Side::Clients, "probe", WitnessTask::Probe { ledger, echo: at })?;
        Ok(vec![echo, probe])
    }

    fn start_agent(&self, side: Side, name: &str, role: &ProcessRole) -> Result<Agent, Error> {
        let name = format!("{} {name}", self.transport.name());
        let spawner = self.network.spawner(side, self.plan.program, self.traces().as_deref())?;
        let (job, details) = (JOB.to_owned(), json!(role));
        spawner.start(Task { name, core: None, bind: None, job, details })
    }

    fn next_life(&mut self) -> u32 {
        self.lives += 1;
        self.lives
    }
}

/// Returns the folder that processes mount their disks on.
pub(super) fn disk(folder: &Path) -> PathBuf {
    folder.join("disk")
}
