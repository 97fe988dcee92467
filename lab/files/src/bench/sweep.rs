//! All runs: each work by each peer in turn, on each network.

use std::env;
use std::path::Path;

use apus_report::experiment::Experiment;
use apus_report::findings::Findings;
use apus_report::progress::Progress;
use apus_testbed::error::{Doing, Error};

use super::findings::found;
use super::interrupt::Interrupt;
use super::material::Material;
use super::measured::Measured;
use super::network::Network;
use super::options::{BenchOptions, PEERS};
use super::peers::{Apus, Given, Local, Peer, Site, Sshfs};
use super::stage::Stage;
use super::works::Work;
use super::workspace::Workspace;

/// A participating peer, or one that has failed.
struct Contender {
    peer: Box<dyn Peer>,
    failure: Option<String>,
}

/// A peer that was started, or why it could not be.
type Started = Result<Box<dyn Peer>, Error>;

/// State shared by all networks.
struct Bench<'a> {
    options: &'a BenchOptions,
    workspace: &'a Workspace,
    material: Material,
    interrupt: Interrupt,
    works: Vec<&'static Work>,
    progress: Progress,
    measured: Vec<Measured>,
    notes: Vec<String>,
}

impl Experiment for BenchOptions {
    type Error = Error;

    fn run(&self) -> Result<Findings, Error> {
        let program = env::current_exe().doing(|| "find this program's file".to_owned())?;
        run(self, &program)
    }
}

/// Measures everything.
fn run(options: &BenchOptions, program: &Path) -> Result<Findings, Error> {
    options.check()?;
    let interrupt = Interrupt::catch()?;
    let workspace = Workspace::new()?;
    let mut notes = vec![load()];
    if !workspace.is_in_memory() {
        notes.push(
            "/dev/shm cannot be used: the directories of the servers are on a disk".to_owned(),
        );
    }
    let mut works = options.works();
    works.retain(|work| {
        let missing = work.programs.iter().find(|name| apus_measure::program::find(name).is_none());
        notes.extend(
            missing.map(|name| format!("{} is not measured: {name} is not installed", work.name)),
        );
        missing.is_none()
    });
    let sshfs = options.has_peer("sshfs").then(Sshfs::missing).flatten();
    notes.extend(sshfs);
    let peers = PEERS.len() + options.peer.len();
    let steps = works.len() * options.runs * (peers + options.rtt.len() * 2);
    let mut bench = Bench {
        options,
        workspace: &workspace,
        material: Material::new(&workspace, options.seed)?,
        interrupt,
        works,
        progress: Progress::of(steps),
        measured: Vec::new(),
        notes,
    };
    bench.on(Network::loopback())?;
    for rtt in &options.rtt {
        match Network::delayed(*rtt, program) {
            Ok(network) => bench.on(network)?,
            Err(error) => bench.notes.push(format!("RTT {rtt} ms is not measured: {error}")),
        }
    }
    if bench.measured.is_empty() {
        let problem = format!("no peer is left to measure ({})", bench.notes.join("; "));
        return Err(Error::Option { option: "only", problem });
    }
    Ok(found(options, &bench.measured, bench.notes))
}

impl Bench<'_> {
    /// Measures all works by all peers on a network.
    fn on(&mut self, network: Network) -> Result<(), Error> {
        let rtt = network.rtt;
        let mut contenders = self.contenders(&network)?;
        for run in 0..self.options.runs {
            for work in self.works.clone() {
                for turn in 0..contenders.len() {
                    // A different contender starts in each run.
                    let index = (turn + run) % contenders.len();
                    self.measure(rtt, run, work, &mut contenders[index])?;
                }
            }
            for contender in &mut contenders {
                self.clean(run, contender)?;
            }
        }
        drop(contenders);
        self.notes.extend(network.down()?);
        Ok(())
    }

    /// Starts the peers that take part on a network.
    fn contenders(&mut self, network: &Network) -> Result<Vec<Contender>, Error> {
        let site = Site {
            server: network.at_server(),
            client: network.at_client(),
            address: network.server_address(),
            trusted: network.trusted(),
            name: network.name(),
            workspace: self.workspace,
            interrupt: &self.interrupt,
        };
        let options = self.options;
        let mut started: Vec<(String, Started)> = Vec::new();
        if options.has_peer("apus") {
            let peer = Apus::start(&site, options.poll);
            started.push(("apus".to_owned(), peer.map(|peer| Box::new(peer) as _)));
        }
        if options.has_peer("local") && !network.is_delayed() {
            started.push(("local".to_owned(), Local::new(&site).map(|peer| Box::new(peer) as _)));
        }
        if options.has_peer("sshfs") && Sshfs::missing().is_none() {
            started.push(("sshfs".to_owned(), Sshfs::start(&site).map(|peer| Box::new(peer) as _)));
        }
        let given = options.peer.iter().filter(|given| options.has_peer(&given.name));
        for given in given.filter(|_| !network.is_delayed()) {
            let peer = Given::new(&given.name, &given.path);
            started.push((given.name.clone(), peer.map(|peer| Box::new(peer) as _)));
        }
        let mut contenders = Vec::new();
        for (name, peer) in started {
            match peer {
                Ok(peer) => contenders.push(Contender { peer, failure: None }),
                Err(error) => {
                    self.interrupt.check()?;
                    let why =
                        format!("{name} cannot be measured at RTT {} ms: {error}", network.rtt);
                    self.notes.push(why);
                }
            }
        }
        Ok(contenders)
    }

    /// Measures a work once.
    fn measure(
        &mut self,
        rtt: f64,
        run: usize,
        work: &'static Work,
        contender: &mut Contender,
    ) -> Result<(), Error> {
        let peer = contender.peer.name().to_owned();
        self.progress.step(&format!("run {}, RTT {rtt} ms: {} by {peer}", run + 1, work.name));
        self.interrupt.check()?;
        let result = match &contender.failure {
            Some(failure) => Err(failure.clone()),
            None => Stage::new(&mut *contender.peer, &self.material, &self.interrupt, run as u64)
                .and_then(|mut stage| (work.run)(&mut stage))
                .map_err(|error| error.to_string()),
        };
        self.interrupt.check()?;
        let known = |it: &Measured| {
            it.rtt.to_bits() == rtt.to_bits() && it.work.name == work.name && it.peer == peer
        };
        let index = self.measured.iter().position(known).unwrap_or_else(|| {
            self.measured.push(Measured {
                rtt,
                work,
                peer: peer.clone(),
                runs: Vec::new(),
                failure: None,
            });
            self.measured.len() - 1
        });
        match result {
            Ok(sample) => self.measured[index].runs.push((run, sample)),
            Err(why) => {
                if contender.failure.is_none() {
                    self.notes.push(format!(
                        "{peer} failed in {} at RTT {rtt} ms, and does not take part afterwards: {why}",
                        work.name
                    ));
                }
                self.measured[index].failure.get_or_insert_with(|| why.clone());
                contender.failure.get_or_insert(why);
            }
        }
        Ok(())
    }

    /// Removes the files of a run.
    fn clean(&self, run: usize, contender: &mut Contender) -> Result<(), Error> {
        if contender.failure.is_some() {
            return Ok(());
        }
        let cleaned = Stage::new(&mut *contender.peer, &self.material, &self.interrupt, run as u64)
            .and_then(|stage| {
                // If it cannot be removed, the next run still has a separate directory.
                let _ = std::fs::remove_dir_all(stage.directory());
                stage.peer.settle()
            });
        self.interrupt.check()?;
        contender.failure = cleaned.err().map(|error| error.to_string());
        Ok(())
    }
}

/// Returns the load of the machine at the start.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let minute = text.split(' ').next().unwrap_or("unknown");
    format!("load average of the minute before: {minute}; other programs slow down all peers")
}
