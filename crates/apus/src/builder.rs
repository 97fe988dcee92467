//! Options of an endpoint, and how it is opened and started.

use crate::engine::backlog::Backlog;
use crate::engine::poll_mode::PollMode;
use crate::engine::shard::{DriverSetup, Settings, Shard};
use crate::engine::{background_poller, dedicated};
use crate::error::BindError;
use crate::overload::Quotas;
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

/// Options for a new [`Endpoint`](crate::Endpoint); every option has a default.
///
/// [`EndpointBuilder::bind`] starts an endpoint that serves requests, [`EndpointBuilder::client`]
/// one that does not. [`tokio::Endpoint::bind_with`](crate::tokio::Endpoint::bind_with) takes a
/// builder as well.
///
/// ```
/// use apus::{Config, Endpoint, PollMode};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::builder()
///     .poll_mode(PollMode::Block)
///     .config(Config::builder().max_message(1_000_000).build()?)
///     .bind("127.0.0.1:0")?;
/// # drop(endpoint);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "call `bind`"]
pub struct EndpointBuilder {
    config: Config,
    udp: UdpConfig,
    /// Raw IP instead of UDP.
    raw: Option<RawConfig>,
    /// First RPC id, for [`EndpointBuilder::with_driver`].
    first_id: Option<u64>,
    poll: PollMode,
    engine: Engine,
    receive_batch: usize,
    serve: bool,
    max_queueing: Duration,
    share: u32,
    local: bool,
    local_config: apus_local::LocalConfig,
    triggers: FreezeTriggers,
    trace_files: Option<TraceFiles>,
    observable: bool,
}

/// Which threads run a blocking endpoint's loop. The default is [`Engine::Waiters`].
///
/// Its text form, also used with the feature `serde`, is `waiters`, `dedicated` or `dedicated=CPU`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
#[non_exhaustive]
pub enum Engine {
    /// The threads that wait for messages, one at a time. An unloaded call then needs no wake-up.
    /// While no thread waits, a background poller runs the loop.
    #[default]
    Waiters,
    /// A thread of its own, pinned to a CPU if one is given. Each message is handed off from it to
    /// a thread of the application.
    Dedicated {
        /// The CPU to pin the thread to; `None` lets the system choose.
        cpu: Option<usize>,
    },
}

impl std::str::FromStr for Engine {
    type Err = ParseEngineError;

    /// Parses `waiters`, `dedicated`, or `dedicated=3` (a CPU).
    fn from_str(text: &str) -> Result<Self, ParseEngineError> {
        match text.split_once('=') {
            None if text == "waiters" => Ok(Self::Waiters),
            None if text == "dedicated" => Ok(Self::Dedicated { cpu: None }),
            Some(("dedicated", cpu)) => match cpu.parse() {
                Ok(cpu) => Ok(Self::Dedicated { cpu: Some(cpu) }),
                Err(_) => Err(ParseEngineError),
            },
            _ => Err(ParseEngineError),
        }
    }
}

impl std::fmt::Display for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Waiters => f.pad("waiters"),
            Self::Dedicated { cpu: None } => f.pad("dedicated"),
            Self::Dedicated { cpu: Some(cpu) } => write!(f, "dedicated={cpu}"),
        }
    }
}

#[cfg(feature = "serde")]
impl From<Engine> for String {
    fn from(engine: Engine) -> Self {
        engine.to_string()
    }
}

#[cfg(feature = "serde")]
impl TryFrom<String> for Engine {
    type Error = ParseEngineError;

    fn try_from(text: String) -> Result<Self, ParseEngineError> {
        text.parse()
    }
}

/// The error for a text that names no [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `waiters`, `dedicated` or `dedicated=CPU`, such as `dedicated=3`")]
pub struct ParseEngineError;

impl Default for EndpointBuilder {
    fn default() -> Self {
        Self {
            config: Config::default(),
            udp: UdpConfig::default(),
            raw: None,
            first_id: None,
            poll: PollMode::default(),
            engine: Engine::default(),
            receive_batch: Self::RECEIVE_BATCH,
            serve: true,
            max_queueing: Backlog::MAX_QUEUEING,
            share: 100,
            local: true,
            local_config: apus_local::LocalConfig::default(),
            triggers: FreezeTriggers::new(),
            trace_files: None,
            observable: true,
        }
    }
}

impl EndpointBuilder {
    /// Default of [`EndpointBuilder::receive_batch`]: 32 packets, the quota of a pass of the loop
    /// ([`Quotas::DEFAULT`] has the rationale).
    pub const RECEIVE_BATCH: usize = Quotas::DEFAULT.receive;

    /// Sets the parameters of the protocol, such as the limits for messages, buffers and peers. The
    /// default is [`Config::default`].
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets the options of the UDP socket, such as buffer sizes. Its address comes from
    /// [`EndpointBuilder::bind`]; only [`EndpointBuilder::client`] uses [`UdpConfig::bind`].
    pub const fn udp(mut self, udp: UdpConfig) -> Self {
        self.udp = udp;
        self
    }

    /// Uses raw IP (protocol 146) instead of UDP, as the Linux kernel's Homa module does. Requires
    /// the capability CAP_NET_RAW.
    ///
    /// The endpoint then speaks the kernel profile, whatever [`EndpointBuilder::config`] says:
    /// messages have at most 1,000,000 bytes, and clients of refused requests get no reason. The
    /// address comes from [`EndpointBuilder::bind`]; [`EndpointBuilder::client`] takes the one in
    /// `raw`.
    ///
    /// An endpoint speaks one of the two IP protocols: bound to `0.0.0.0`, the default, it reaches
    /// IPv4 peers, bound to `[::]` IPv6 peers. The port of a peer's address is its Homa port. The
    /// ids of calls come from a range that no other endpoint of the host has ([`Raw::first_id`]).
    ///
    /// Calls never go through shared memory ([`EndpointBuilder::local`]): that path is bound to UDP
    /// addresses, and an endpoint with the same address and port over UDP is another endpoint.
    pub const fn raw(mut self, raw: RawConfig) -> Self {
        self.raw = Some(raw);
        self
    }

    /// Sets how threads wait: spinning, sleeping, or spinning for a time and then sleeping. The
    /// default is [`PollMode::Hybrid`] with 50 µs.
    pub const fn poll_mode(mut self, poll: PollMode) -> Self {
        self.poll = poll;
        self
    }

    /// Sets which threads run the endpoint's loop. The default is [`Engine::Waiters`].
    pub const fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Sets the number of packets after which a pass of the loop stops receiving, handles what it
    /// has and transmits. The default is [`EndpointBuilder::RECEIVE_BATCH`], 32; 0 counts as 1.
    ///
    /// The limit is not exact: the UDP driver receives up to 16 datagrams at once, each with all
    /// packets that receive offload has merged into it.
    pub const fn receive_batch(mut self, packets: usize) -> Self {
        self.receive_batch = packets;
        self
    }

    /// Sets whether requests are accepted; if not, their clients get an error that says so. The
    /// default is `true`.
    pub const fn serve(mut self, serve: bool) -> Self {
        self.serve = serve;
        self
    }

    /// Sets for how long requests may wait for a thread of the application while far more arrive
    /// than it serves. The default is 500 µs; [`Duration::MAX`] disables the limit.
    ///
    /// With the limit, a server that is offered several times its capacity still serves as many
    /// requests as at capacity, each after a short wait. It takes effect when 20 times as many
    /// requests wait as the application receives in this time, and at least 320. From then on the
    /// queue holds what the application receives in this time, and at least 16 requests. Every
    /// further request is refused at once with [`Refusal::Overloaded`](crate::Refusal::Overloaded):
    /// it was not executed and may be sent elsewhere. Replies may be held back meanwhile to leave
    /// together, for up to 125 µs or until their thread receives its next request.
    ///
    /// The limit ends when the queue has not been full for 10 ms. It has no effect while the
    /// application receives no requests at all.
    pub const fn max_queueing(mut self, time: Duration) -> Self {
        self.max_queueing = time;
        self
    }

    /// Sets the percentage of its core that the thread of [`Engine::Dedicated`] may use while other
    /// threads have work on that core: 1 to 100; values outside count as the nearest. The default
    /// is 100, since the system moves threads that compete for a core to other cores. Set less if
    /// the engine is pinned to a core that other threads need.
    ///
    /// Has no effect on [`Engine::Waiters`], which uses only the time of the application's own
    /// threads.
    pub const fn core_share(mut self, percent: u32) -> Self {
        self.share = percent;
        self
    }

    /// Sets whether calls to peers on this host go through shared memory if the peer agrees;
    /// guarantees are the same, and a call takes a tenth of the time. The default is `true`: the
    /// endpoint finds such peers without configuration, and they find it if it serves requests.
    ///
    /// Disable it to measure the network, or to save the memory: up to 772 KiB per peer on this
    /// host, accounted to the client. It is not available with the kernel profile or raw IP. If the
    /// system refuses the resources, the endpoint works over the network alone
    /// ([`EndpointHandle::has_local_path`](crate::EndpointHandle::has_local_path)).
    pub const fn local(mut self, local: bool) -> Self {
        self.local = local;
        self
    }

    /// Sets the options of the shared-memory path ([`EndpointBuilder::local`]): sizes of the rings,
    /// number of peers, and the users whose processes are accepted. The default accepts only
    /// processes of the same user. The endpoint sets `limits` and `identity` itself.
    pub fn local_config(mut self, config: apus_local::LocalConfig) -> Self {
        self.local_config = config;
        self
    }

    /// Sets which events freeze the [time trace](crate::trace) of the process, and whether peers
    /// may. The default is none.
    pub const fn freeze_triggers(mut self, triggers: FreezeTriggers) -> Self {
        self.triggers = triggers;
        self
    }

    /// Writes a file whenever a [trigger](EndpointBuilder::freeze_triggers) freezes the trace of
    /// the process, then resumes recording. The default is no files. [`TraceFiles`] describes their
    /// names and limits.
    ///
    /// One thread per process, `apus-traces`, writes the files. A trace that is frozen when the
    /// last endpoint ends is still written.
    pub fn trace_files(mut self, files: TraceFiles) -> Self {
        self.trace_files = Some(files);
        self
    }

    /// Sets whether other processes of the same user, and root, can read the endpoint's counters
    /// and live RPCs, as `apus metrics` and `apus top` do. The default is `true`. Needs the feature
    /// `introspection` (`apus::introspection` has the costs).
    ///
    /// No request from outside changes how the endpoint works. The time trace belongs to the
    /// process: it can be fetched, frozen and resumed as long as any of its endpoints is
    /// observable.
    pub const fn observable(mut self, observable: bool) -> Self {
        self.observable = observable;
        self
    }

    /// Returns whether other processes can read the endpoint's state.
    pub(crate) const fn is_observable(&self) -> bool {
        self.observable && cfg!(feature = "introspection")
    }

    /// Sets the id of the endpoint's first call, for [`EndpointBuilder::with_driver`] in the kernel
    /// profile; each further call has the next even id.
    ///
    /// In the kernel profile a server identifies a call by the client's host and its id (reference
    /// row L-2), so no two endpoints of a host may ever use the same id. A driver that is built on
    /// [`Raw`] passes on [`Raw::first_id`]. By default the first id is drawn at random between 2^61
    /// and 2^62. Two endpoints with 10^9 calls each then share an id in two cases of 10^9, and
    /// calls of the kernel module on the same host differ only because it counts from 2.
    ///
    /// [`EndpointBuilder::bind`] and [`EndpointBuilder::client`] do not need this option: over raw
    /// IP they use a range that no other endpoint of the host has ([`Raw::first_id`]), and in the
    /// udp profile ids belong to the endpoint.
    ///
    /// # Panics
    ///
    /// If `id` is odd: odd ids belong to servers.
    pub const fn first_id(mut self, id: u64) -> Self {
        assert!(id.is_multiple_of(2), "clients' ids are even");
        self.first_id = Some(id);
        self
    }

    /// Combines a driver with the builder's parameters.
    pub(crate) fn on_driver(&self, driver: Box<dyn Driver>) -> DriverSetup {
        DriverSetup { driver, config: self.config.clone(), first_id: self.first_id, local: None }
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
            Engine::Dedicated { cpu } => dedicated::start(&shard, cpu, self.poll, self.share),
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
            let driver = Box::new(Udp::open(&UdpConfig { bind, ..self.udp })?);
            let config = self.config.clone();
            return Ok(DriverSetup { driver, config, first_id: None, local: self.local_options() });
        };
        let config = self.config.to_builder().profile(Profile::Kernel).build()?;
        let driver = Box::new(Raw::open(&RawConfig { bind, ..raw })?);
        let first_id = Some(driver.first_id());
        Ok(DriverSetup { driver, config, first_id, local: None })
    }

    /// Returns the options of the shared-memory path if it is enabled.
    fn local_options(&self) -> Option<apus_local::LocalConfig> {
        let wanted = self.local && self.config.profile() == Profile::Udp;
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
        let Self { serve: serving, max_queueing, triggers, .. } = *self;
        let settings = Settings { quotas, serving, max_queueing, triggers };
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
