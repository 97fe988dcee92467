//! The options of an endpoint, and the start of an endpoint from them.

use super::engine::Engine;
use super::shards::Shards as ShardCount;
use crate::address::{self, AddressError};
use crate::engine::handoff::{Sibling, Siblings};
use crate::engine::poll::background_poller;
use crate::engine::runners::dedicated;
use crate::engine::shard::{DriverSetup, Settings, Shard};
use crate::engine::shards::{OpenCallers, Runner, Running, Shards};
use crate::engine::state::Backlog;
use crate::engine::waiting::PollMode;
use crate::error::{BindError, Closed};
use crate::overload::Quotas;
use crate::security::{Sealer, Sealing};
use crate::trace::{FreezeTriggers, TraceFiles};
use crate::warning;
use apus_driver::Driver;
use apus_hostgroup::HostGroup;
use apus_proto::{Config, Profile, acknowledge_for_ended_client};
use apus_socket::{EndedNeighbours, Raw, RawConfig};
use apus_socket::{Udp, UdpConfig};
use apus_trace::auto_save::{self, AutoSave};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

/// Settings collected by an [`EndpointBuilder`](super::EndpointBuilder).
#[derive(Clone, Debug)]
pub(crate) struct EndpointOptions {
    pub(super) config: Config,
    pub(super) udp: UdpConfig,
    /// Raw IP instead of UDP.
    pub(super) raw: Option<RawConfig>,
    /// First RPC id, for a driver of the application.
    pub(super) first_id: Option<u64>,
    pub(super) poll: PollMode,
    pub(super) engine: Engine,
    pub(super) shards: ShardCount,
    pub(super) receive_batch: usize,
    pub(super) serve: bool,
    pub(super) max_queueing: Duration,
    pub(super) call_timeout: Duration,
    pub(super) core_share: u32,
    pub(super) host_group: Option<String>,
    pub(super) local: bool,
    pub(super) local_config: apus_local::LocalConfig,
    pub(super) triggers: FreezeTriggers,
    pub(super) trace_files: Option<TraceFiles>,
    pub(super) observable: bool,
    /// How packets are sealed.
    pub(super) sealer: Sealer,
}

/// The ports of an endpoint's sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// All shards have one port, which clients call.
    Shared,
    /// Each shard has a separate port.
    Own,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            config: Config::default(),
            udp: UdpConfig::default(),
            raw: None,
            first_id: None,
            poll: PollMode::default(),
            engine: Engine::default(),
            shards: ShardCount::default(),
            receive_batch: Quotas::DEFAULT.receive,
            serve: true,
            max_queueing: Backlog::MAX_QUEUEING,
            call_timeout: Shard::CALL_TIMEOUT,
            core_share: 100,
            host_group: None,
            local: true,
            local_config: apus_local::LocalConfig::default(),
            triggers: FreezeTriggers::new(),
            trace_files: None,
            observable: true,
            sealer: Sealer::default(),
        }
    }
}

impl EndpointOptions {
    /// Returns whether other processes can read the endpoint's state.
    pub(crate) const fn is_observable(&self) -> bool {
        self.observable && cfg!(feature = "introspection")
    }

    /// Combines a driver with the builder's parameters.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the keys cannot be used.
    pub(crate) fn on_driver(&self, driver: Box<dyn Driver>) -> Result<Vec<DriverSetup>, BindError> {
        let (config, first_id) = (self.config.clone(), self.first_id);
        let (driver, sealing) = self.sealer.seal(driver, &self.config)?;
        Ok(vec![DriverSetup { driver, config, first_id, local: None, ended: None, sealing }])
    }

    /// Starts the shards of a blocking endpoint, and the runners of their loops.
    pub(crate) fn start(
        &self,
        opened: Vec<DriverSetup>,
        ports: Ports,
    ) -> Result<Shards, BindError> {
        let Self { engine, poll, core_share, .. } = *self;
        self.start_with(opened, ports, move |shard, index| match engine {
            Engine::Waiters => background_poller::start(shard).map(Runner::Background),
            Engine::Dedicated { cpu } => {
                let cpu = cpu.map(|cpu| cpu + index);
                dedicated::start(shard, cpu, poll, core_share).map(Runner::Thread)
            }
        })
    }

    /// Starts the shards of an endpoint. `run` has the loop of the shard with this index run.
    pub(crate) fn start_with(
        &self,
        opened: Vec<DriverSetup>,
        ports: Ports,
        run: impl Fn(&Arc<Shard>, usize) -> io::Result<Runner> + Send + Sync + 'static,
    ) -> Result<Shards, BindError> {
        let count = opened.len();
        if count == 1 {
            return Ok(Shards::new(self.run_all(opened, None, &run)?, None));
        }
        let has_callers = ports == Ports::Shared;
        let siblings = Siblings::new(if has_callers { 2 * count } else { count });
        let ip = opened[0].driver.local_addr().ip();
        let first = self.run_all(opened, Some((&siblings, 0)), &run)?;
        let callers = has_callers.then(|| {
            let udp = UdpConfig { bind: (ip, 0).into(), ..self.udp };
            let options = Self { udp, serve: false, trace_files: None, ..self.clone() };
            Box::new(move || {
                let opened = options.open_paths(count)?;
                options.run_all(opened, Some((&siblings, count)), &run)
            }) as OpenCallers
        });
        Ok(Shards::new(first, callers))
    }

    /// Starts a shard on each of `opened`. The first of them has this place among its siblings, if
    /// there are any.
    fn run_all(
        &self,
        opened: Vec<DriverSetup>,
        place: Option<(&Arc<Siblings<Shard>>, usize)>,
        run: &impl Fn(&Arc<Shard>, usize) -> io::Result<Runner>,
    ) -> Result<Vec<Running>, BindError> {
        let mut running: Vec<Running> = Vec::new();
        for (index, setup) in opened.into_iter().enumerate() {
            let address = setup.driver.local_addr();
            let sibling = place.map(|(siblings, first)| siblings.place(first + index));
            let started = self.shard(setup, sibling, index == 0).and_then(|shard| {
                let runner = run(&shard, index);
                let runner = runner.map_err(|source| BindError::Start { address, source })?;
                Ok((shard, runner))
            });
            match started {
                Ok(started) => running.push(started),
                Err(error) => {
                    for (shard, runner) in running {
                        shard.lock().close(Closed::ShutDown);
                        runner.end();
                    }
                    return Err(error);
                }
            }
        }
        Ok(running)
    }

    /// Returns the number of shards over UDP.
    fn shard_count(&self) -> usize {
        let sharded = self.raw.is_none() && self.config.profile() == Profile::Udp;
        if sharded { self.shards.count() } else { 1 }
    }

    /// Opens the drivers at the first address that can be bound.
    pub(crate) fn open(
        &self,
        address: &(impl ToSocketAddrs + std::fmt::Debug),
    ) -> Result<Vec<DriverSetup>, BindError> {
        let text = format!("{address:?}");
        let found = address.to_socket_addrs().map(Iterator::collect);
        self.open_first(&text, found)
    }

    /// Opens the drivers at the first address that can be bound of those that the standard library
    /// has `found` for an address written as `text`.
    pub(crate) fn open_first(
        &self,
        text: &str,
        found: io::Result<Vec<SocketAddr>>,
    ) -> Result<Vec<DriverSetup>, BindError> {
        let resolve = |source| BindError::Resolve { address: text.to_owned(), source };
        // The standard library knows no names of interfaces.
        let found = found.or_else(|error| match address::parse(text.trim_matches('"')) {
            Ok(address) => Ok(vec![address]),
            Err(AddressError::NotAnAddress(_)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        });
        let mut last = None;
        for bind in found.map_err(resolve)? {
            if address::needs_interface(bind) {
                let error = io::Error::other(AddressError::NeedsInterface);
                last = Some(BindError::Resolve { address: bind.to_string(), source: error });
                continue;
            }
            match self.open_at(bind) {
                Ok(opened) => return Ok(opened),
                Err(error) => last = Some(error),
            }
        }
        let nothing = || resolve(io::Error::new(io::ErrorKind::NotFound, "no address"));
        Err(last.unwrap_or_else(nothing))
    }

    /// Opens a driver for each shard at a free port of all addresses.
    pub(crate) fn open_any(&self) -> Result<Vec<DriverSetup>, BindError> {
        match self.raw {
            Some(raw) => self.open_at(raw.bind),
            None => self.open_paths(self.shard_count()),
        }
    }

    /// Opens `count` sockets at separate ports: the ports after the first one's, where they are
    /// free. A server spreads such ports over its shards evenly (`spread` of `apus-socket`).
    fn open_paths(&self, count: usize) -> Result<Vec<DriverSetup>, BindError> {
        let mut paths = vec![Udp::open(&self.udp_at(self.udp.bind))?];
        let first = paths[0].local_addr().port();
        let at = |port| {
            let mut bind = self.udp.bind;
            bind.set_port(port);
            Udp::open(&self.udp_at(bind))
        };
        for index in 1..count as u16 {
            let next = first.checked_add(index).and_then(|port| at(port).ok());
            paths.push(next.map_or_else(|| at(0), Ok)?);
        }
        paths.into_iter().map(|udp| self.over_udp(udp, true)).collect()
    }

    fn open_at(&self, bind: SocketAddr) -> Result<Vec<DriverSetup>, BindError> {
        let Some(raw) = self.raw else {
            let group = Udp::open_group(&self.udp_at(bind), self.shard_count())?;
            // One of them has the endpoint's name for peers of this host.
            let setup = |(index, udp)| self.over_udp(udp, index == 0);
            return group.into_iter().enumerate().map(setup).collect();
        };
        let config = self.config.to_builder().profile(Profile::Kernel).build()?;
        let driver = Box::new(Raw::open(&RawConfig { bind, ..raw })?);
        let first_id = Some(driver.first_id());
        let address = driver.local_addr();
        let ended = EndedNeighbours::watch(address, acknowledge_for_ended_client);
        // The endpoint works without it.
        let ended = ended.inspect_err(|error| {
            warning::print(format_args!(
                "{address} does not answer for endpoints of this host that are killed: {error}"
            ));
        });
        let ended = ended.ok();
        let sealing = Sealing::default();
        Ok(vec![DriverSetup { driver, config, first_id, local: None, ended, sealing }])
    }

    /// Returns the settings of a socket at `bind`. The protocol and the socket spray together.
    fn udp_at(&self, bind: SocketAddr) -> UdpConfig {
        UdpConfig { bind, spray_ports: self.config.spray_ports() as u8, ..self.udp }
    }

    fn over_udp(&self, driver: Udp, local: bool) -> Result<DriverSetup, BindError> {
        let (driver, sealing) = self.sealer.seal(Box::new(driver), &self.config)?;
        let local = if local { self.local_options() } else { None };
        let config = self.config.clone();
        Ok(DriverSetup { driver, config, first_id: None, local, ended: None, sealing })
    }

    /// Returns the options of the shared-memory path if it is enabled.
    fn local_options(&self) -> Option<apus_local::LocalConfig> {
        let wanted =
            self.local && self.config.profile() == Profile::Udp && self.sealer.allows_memory();
        wanted.then(|| self.local_config.clone())
    }

    /// Builds a shard.
    fn shard(
        &self,
        setup: DriverSetup,
        sibling: Option<Sibling<Shard>>,
        writes_traces: bool,
    ) -> Result<Arc<Shard>, BindError> {
        let address = setup.driver.local_addr();
        let quotas = Quotas { receive: self.receive_batch, ..Quotas::DEFAULT };
        let Self { serve: serving, max_queueing, call_timeout, triggers, .. } = *self;
        let failed = |source| BindError::Start { address, source };
        let host_group = self.host_group().map_err(failed)?;
        let settings =
            Settings { quotas, serving, max_queueing, call_timeout, triggers, host_group };
        let auto_save = if writes_traces { self.auto_save()? } else { None };
        let shard = Shard::new(setup, self.poll, settings, auto_save, sibling)
            .map(Arc::new)
            .map_err(failed)?;
        if let Some(sibling) = shard.sibling() {
            sibling.open(&shard);
        }
        Ok(shard)
    }

    /// Joins the host group, if the endpoint has one.
    fn host_group(&self) -> io::Result<Option<Arc<HostGroup>>> {
        let policy = &self.local_config.peer_policy;
        self.host_group.as_ref().map(|name| HostGroup::join(name, policy)).transpose()
    }

    /// Starts the thread that writes trace files, if they are enabled.
    fn auto_save(&self) -> Result<Option<AutoSave>, BindError> {
        let Some(files) = &self.trace_files else { return Ok(None) };
        let failed = |source| BindError::TraceFiles { folder: files.folder().to_owned(), source };
        auto_save::start(files.clone()).map(Some).map_err(failed)
    }
}
