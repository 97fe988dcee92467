//! The options of an endpoint, and what they open and start.

use super::engine::Engine;
use crate::ended_neighbours::EndedNeighbours;
use crate::engine::backlog::Backlog;
use crate::engine::poll_mode::PollMode;
use crate::engine::shard::{DriverSetup, Settings, Shard};
use crate::engine::{background_poller, dedicated};
use crate::error::BindError;
use crate::overload::Quotas;
use crate::security::{Sealer, Sealing};
use crate::trace::{FreezeTriggers, TraceFiles};
use apus_driver::Driver;
use apus_proto::{Config, Profile};
use apus_socket::{Raw, RawConfig};
use apus_socket::{Udp, UdpConfig};
use apus_trace::auto_save::{self, AutoSave};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// What an [`EndpointBuilder`](super::EndpointBuilder) has collected.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(super) config: Config,
    pub(super) udp: UdpConfig,
    /// Raw IP instead of UDP.
    pub(super) raw: Option<RawConfig>,
    /// First RPC id, for a driver of the application.
    pub(super) first_id: Option<u64>,
    pub(super) poll: PollMode,
    pub(super) engine: Engine,
    pub(super) receive_batch: usize,
    pub(super) serve: bool,
    pub(super) max_queueing: Duration,
    pub(super) call_timeout: Duration,
    pub(super) core_share: u32,
    pub(super) local: bool,
    pub(super) local_config: apus_local::LocalConfig,
    pub(super) triggers: FreezeTriggers,
    pub(super) trace_files: Option<TraceFiles>,
    pub(super) observable: bool,
    /// How packets are sealed.
    pub(super) sealer: Sealer,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            config: Config::default(),
            udp: UdpConfig::default(),
            raw: None,
            first_id: None,
            poll: PollMode::default(),
            engine: Engine::default(),
            receive_batch: Quotas::DEFAULT.receive,
            serve: true,
            max_queueing: Backlog::MAX_QUEUEING,
            call_timeout: Shard::CALL_TIMEOUT,
            core_share: 100,
            local: true,
            local_config: apus_local::LocalConfig::default(),
            triggers: FreezeTriggers::new(),
            trace_files: None,
            observable: true,
            sealer: Sealer::default(),
        }
    }
}

impl Options {
    /// Returns whether other processes can read the endpoint's state.
    pub(crate) const fn is_observable(&self) -> bool {
        self.observable && cfg!(feature = "introspection")
    }

    /// Combines a driver with the builder's parameters.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the keys cannot be used.
    pub(crate) fn on_driver(&self, driver: Box<dyn Driver>) -> Result<DriverSetup, BindError> {
        let (config, first_id) = (self.config.clone(), self.first_id);
        let (driver, sealing) = self.sealer.seal(driver)?;
        Ok(DriverSetup { driver, config, first_id, local: None, ended: None, sealing })
    }

    /// Starts a shard and the thread that runs its loop.
    pub(crate) fn start(
        &self,
        opened: DriverSetup,
    ) -> Result<(Arc<Shard>, JoinHandle<()>), BindError> {
        let address = opened.driver.local_addr();
        let start = |source| BindError::Start { address, source };
        let shard = self.shard(opened, self.poll)?;
        let thread = match self.engine {
            Engine::Waiters => background_poller::start(&shard),
            Engine::Dedicated { cpu } => dedicated::start(&shard, cpu, self.poll, self.core_share),
        };
        Ok((shard, thread.map_err(start)?))
    }

    /// Opens the driver at the first address that can be bound.
    pub(crate) fn open(
        &self,
        address: &(impl ToSocketAddrs + std::fmt::Debug),
    ) -> Result<DriverSetup, BindError> {
        let resolve = |source| BindError::Resolve { address: format!("{address:?}"), source };
        let mut last = None;
        for bind in address.to_socket_addrs().map_err(resolve)? {
            match self.open_at(bind) {
                Ok(opened) => return Ok(opened),
                Err(error) => last = Some(error),
            }
        }
        let nothing = || resolve(std::io::Error::new(std::io::ErrorKind::NotFound, "no address"));
        Err(last.unwrap_or_else(nothing))
    }

    /// Opens the driver at a free port of all addresses.
    pub(crate) fn open_any(&self) -> Result<DriverSetup, BindError> {
        self.open_at(self.raw.map_or(self.udp.bind, |raw| raw.bind))
    }

    fn open_at(&self, bind: SocketAddr) -> Result<DriverSetup, BindError> {
        let Some(raw) = self.raw else {
            let driver = Udp::open(&UdpConfig { bind, ..self.udp })?;
            let (driver, sealing) = self.sealer.seal(Box::new(driver))?;
            let config = self.config.clone();
            let local = self.local_options();
            return Ok(DriverSetup { driver, config, first_id: None, local, ended: None, sealing });
        };
        let config = self.config.to_builder().profile(Profile::Kernel).build()?;
        let driver = Box::new(Raw::open(&RawConfig { bind, ..raw })?);
        let first_id = Some(driver.first_id());
        let ended = EndedNeighbours::watch(driver.local_addr());
        let sealing = Sealing::default();
        Ok(DriverSetup { driver, config, first_id, local: None, ended, sealing })
    }

    /// Returns the options of the shared-memory path if it is enabled.
    fn local_options(&self) -> Option<apus_local::LocalConfig> {
        let wanted =
            self.local && self.config.profile() == Profile::Udp && self.sealer.allows_memory();
        wanted.then(|| self.local_config.clone())
    }

    /// Builds the shard, which blocking and async endpoints start in different ways.
    pub(crate) fn shard(
        &self,
        opened: DriverSetup,
        poll: PollMode,
    ) -> Result<Arc<Shard>, BindError> {
        let address = opened.driver.local_addr();
        let quotas = Quotas { receive: self.receive_batch, ..Quotas::DEFAULT };
        let Self { serve: serving, max_queueing, call_timeout, triggers, .. } = *self;
        let settings = Settings { quotas, serving, max_queueing, call_timeout, triggers };
        let auto_save = self.auto_save()?;
        Shard::new(opened, poll, settings, auto_save)
            .map(Arc::new)
            .map_err(|source| BindError::Start { address, source })
    }

    /// Starts the thread that writes trace files, if they are enabled.
    fn auto_save(&self) -> Result<Option<AutoSave>, BindError> {
        let Some(files) = &self.trace_files else { return Ok(None) };
        let failed = |source| BindError::TraceFiles { folder: files.folder().to_owned(), source };
        auto_save::start(files.clone()).map(Some).map_err(failed)
    }
}
