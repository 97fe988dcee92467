//! How is an endpoint made?

use crate::endpoint::Endpoint;
use crate::engine::backlog::Backlog;
use crate::engine::poll::PollMode;
use crate::engine::shard::{Opened, Settings, Shard};
use crate::engine::{dedicated, keeper};
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
use std::time::Duration;

/// Settings of an [`Endpoint`] before it exists.
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
    /// Raw IP in place of UDP.
    raw: Option<RawConfig>,
    /// Where ids begin on another driver.
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

/// Who turns the endpoint's loop.
///
/// As text, and with the feature `serde`: `waiters`, `dedicated` or `dedicated=CPU`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(into = "String", try_from = "String"))]
#[non_exhaustive]
pub enum Engine {
    /// Whoever waits for a message. An unloaded call then needs no wake-up at all.
    #[default]
    Waiters,
    /// A thread of its own, pinned to a CPU if one is given. Messages cross from it to the
    /// application's threads.
    Dedicated {
        /// The CPU, or wherever the system likes.
        cpu: Option<usize>,
    },
}

impl std::str::FromStr for Engine {
    type Err = ParseEngineError;

    /// `waiters`, `dedicated`, or `dedicated=3` (a CPU).
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

/// A text that names nobody who could turn the loop.
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
    /// Packets of a receive batch, unless [`EndpointBuilder::receive_batch`] says otherwise: the quota of a pass of the loop
    /// ([`Quotas::DEFAULT`], which says why).
    pub const RECEIVE_BATCH: usize = Quotas::DEFAULT.receive;

    /// Parameters of the protocol.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Settings of the socket. Its address is given to [`EndpointBuilder::bind`].
    pub const fn udp(mut self, udp: UdpConfig) -> Self {
        self.udp = udp;
        self
    }

    /// Raw IP in place of UDP: packets lie in IP packets of protocol 146, as those of the Linux kernel's Homa module, and
    /// the endpoint speaks the kernel profile, whatever [`EndpointBuilder::config`] says: messages are at most 1,000,000 bytes
    /// long, and nothing is said about requests that are refused. The address is given to [`EndpointBuilder::bind`];
    /// [`EndpointBuilder::client`] takes the one in `raw`.
    ///
    /// It takes the capability CAP_NET_RAW. An address belongs to one protocol: with `0.0.0.0`, the default, the
    /// endpoint reaches IPv4 peers, with `[::]` those of IPv6. The port of a peer's address is its Homa port.
    /// Which ids the endpoint's calls have is agreed upon with all others of this host ([`Raw::first_id`]).
    ///
    /// There is no way through shared memory ([`EndpointBuilder::local`]): it belongs to the addresses of UDP endpoints, and
    /// whoever has the same address and port over UDP is somebody else; and who chooses raw IP wants to speak with the
    /// kernel module, or to measure the wire.
    pub const fn raw(mut self, raw: RawConfig) -> Self {
        self.raw = Some(raw);
        self
    }

    /// How threads wait: spinning, sleeping, or first one and then the other (the default, with 50 µs).
    pub const fn poll_mode(mut self, poll: PollMode) -> Self {
        self.poll = poll;
        self
    }

    /// Who turns the loop.
    pub const fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Packets after which a pass of the loop takes no further datagrams before it handles what it has and sends;
    /// 0 counts as 1. [`EndpointBuilder::RECEIVE_BATCH`] unless said otherwise. The UDP driver takes at most 16 datagrams
    /// at once, however many packets receive offload has put into them.
    pub const fn receive_batch(mut self, packets: usize) -> Self {
        self.receive_batch = packets;
        self
    }

    /// Whether requests are accepted; if not, their clients get an error that says so. `true` unless
    /// said otherwise.
    pub const fn serve(mut self, serve: bool) -> Self {
        self.serve = serve;
        self
    }

    /// How long requests may wait for a thread of the application when there are far more than it serves;
    /// [`Duration::MAX`] lets them wait for as long as they like. 500 µs unless said otherwise.
    ///
    /// It begins to hold when 20 times as many requests wait as the application takes in this time, and 320 at
    /// least. From then on the queue may hold what it takes in this time, and 16 requests at least; a request
    /// beyond that is refused at once, and its client gets [`Refusal::Overloaded`](crate::Refusal::Overloaded): it was
    /// not executed, and may be sent elsewhere. So a server that is offered several times its capacity serves as many
    /// requests as ever, and serves them soon. While it holds, replies may leave together, up to 125 µs later or when
    /// the thread that made them asks for its next request. Nothing is refused any more when the queue has not been
    /// full for 10 ms, and nothing while the application takes no requests at all.
    pub const fn max_queueing(mut self, time: Duration) -> Self {
        self.max_queueing = time;
        self
    }

    /// Percentage of its core that the thread of [`Engine::Dedicated`] may take while other threads have work on
    /// that core: 1 to 100; lower counts as 1 and higher as 100. 100 unless said otherwise: left to itself, the
    /// system moves threads that get in each other's way to other cores. Say less if the engine is pinned to
    /// a core that others need, too. Without effect on the other ways to turn the loop, which take
    /// no time but the application's own.
    pub const fn core_share(mut self, percent: u32) -> Self {
        self.share = percent;
        self
    }

    /// Whether calls to a peer of this host go through memory that both share, if the peer agrees; `true` unless
    /// said otherwise. Then the endpoint finds such peers by itself, and can be found by them if it serves. What an
    /// application can rely on is the same, and so is what it sees, but for the time: a tenth.
    ///
    /// `false` for who measures the network, or does not want the memory (up to 772 KiB for each peer of this
    /// host, paid by the client). The kernel profile, and raw IP, do without. If the system refuses what it takes,
    /// the endpoint does without, too ([`Endpoint::has_local_path`]).
    pub const fn local(mut self, local: bool) -> Self {
        self.local = local;
        self
    }

    /// Settings of that way: sizes of the rings, how many peers, and which users' processes are let in and connected to
    /// (only those of the same user unless said otherwise). `limits` and `identity` are the endpoint's own
    /// affair and set by it.
    pub fn local_config(mut self, config: apus_local::LocalConfig) -> Self {
        self.local_config = config;
        self
    }

    /// What freezes the trace of the process by itself, and whether peers may; nothing unless it is said. See
    /// [`trace`](crate::trace).
    pub const fn freeze_triggers(mut self, triggers: FreezeTriggers) -> Self {
        self.triggers = triggers;
        self
    }

    /// Writes a file whenever the trace of the process freezes by itself ([`EndpointBuilder::freeze_triggers`] says when), and lets recording
    /// go on; none unless it is said. A thread of its own does that, `apus-traces`, one for all endpoints of the process; what
    /// is frozen when the last endpoint ends is still written. See [`TraceFiles`] for names and bounds.
    pub fn trace_files(mut self, files: TraceFiles) -> Self {
        self.trace_files = Some(files);
        self
    }

    /// Whether other processes of the same user, and root, can look at the endpoint's counters and live RPCs, as `apus metrics`
    /// and `apus top` do; `true` unless said otherwise, and without effect without the feature `live`, which says what that
    /// costs. How the endpoint works cannot be changed from outside. The time trace belongs to the process: it can be had, frozen
    /// and resumed as long as any of its endpoints can be looked at.
    pub const fn observable(mut self, yes: bool) -> Self {
        self.observable = yes;
        self
    }

    /// Whether others can look.
    pub(crate) const fn is_observable(&self) -> bool {
        self.observable && cfg!(feature = "introspection")
    }

    /// Opens a socket at `address` (UDP, unless [`EndpointBuilder::raw`] says otherwise) and starts the endpoint. Port 0 takes
    /// any free one.
    ///
    /// # Errors
    ///
    /// [`BindError`]: the address cannot be resolved or bound, or the system refuses a resource.
    pub fn bind(
        self,
        address: impl ToSocketAddrs + std::fmt::Debug,
    ) -> Result<Endpoint, BindError> {
        let opened = self.open(&address)?;
        self.start(opened)
    }

    /// Opens a socket at any free port of all addresses of the host (over raw IP: of one of the two protocols) and starts
    /// an endpoint that does not serve requests.
    ///
    /// # Errors
    ///
    /// As for [`EndpointBuilder::bind`].
    pub fn client(self) -> Result<Endpoint, BindError> {
        let opened = self.open_any()?;
        self.serve(false).start(opened)
    }

    /// The id of the endpoint's first call, for [`EndpointBuilder::with_driver`] in the kernel profile; the others go up by two from there.
    /// A server there knows a call by the client's host and its id (reference row L-2), so no two endpoints of a host
    /// may ever use the same one. Whoever has a [`Raw`] at the bottom of the driver passes [`Raw::first_id`] on. Without it
    /// the first id is drawn at random between 2^61 and 2^62: two endpoints of 10^9 calls each have one in
    /// common in two cases of 10^9, and nothing keeps the module's own calls on the same host apart but that it counts
    /// from 2. [`EndpointBuilder::bind`] and [`EndpointBuilder::client`] do not need it: over raw IP they take a range that no other
    /// endpoint of the host has (ADR 29), and in the udp profile ids belong to the endpoint.
    ///
    /// # Panics
    ///
    /// If `id` is odd: these are servers'.
    pub const fn first_id(mut self, id: u64) -> Self {
        assert!(id.is_multiple_of(2), "clients' ids are even");
        self.first_id = Some(id);
        self
    }

    /// Starts the endpoint on top of another driver. It has no way through memory: that belongs to addresses of UDP.
    ///
    /// In the kernel profile the caller sees to it that calls have ids that no other endpoint of the host uses:
    /// [`EndpointBuilder::first_id`].
    ///
    /// # Errors
    ///
    /// [`BindError::Start`]: the system refuses a thread, a descriptor or a random seed.
    pub fn with_driver(self, driver: Box<dyn Driver>) -> Result<Endpoint, BindError> {
        let opened = self.on_top_of(driver);
        self.start(opened)
    }

    /// Another driver with the parameters as they are.
    pub(crate) fn on_top_of(&self, driver: Box<dyn Driver>) -> Opened {
        Opened { driver, config: self.config.clone(), first_id: self.first_id, near: None }
    }

    fn start(self, opened: Opened) -> Result<Endpoint, BindError> {
        let address = opened.driver.local_addr();
        let start = |source| BindError::Start { address, source };
        let shard = self.shard(opened, self.poll)?;
        let thread = match self.engine {
            Engine::Waiters => keeper::start(&shard),
            Engine::Dedicated { cpu } => dedicated::start(&shard, cpu, self.poll, self.share),
        };
        Ok(Endpoint::new(shard, thread.map_err(start)?, self.is_observable()))
    }

    /// The driver at the first address that can be bound.
    pub(crate) fn open(
        &self,
        address: &(impl ToSocketAddrs + std::fmt::Debug),
    ) -> Result<Opened, BindError> {
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

    /// The driver at any free port of all addresses.
    pub(crate) fn open_any(&self) -> Result<Opened, BindError> {
        self.open_at(self.raw.map_or(self.udp.bind, |raw| raw.bind))
    }

    fn open_at(&self, bind: SocketAddr) -> Result<Opened, BindError> {
        let Some(raw) = self.raw else {
            let driver = Box::new(Udp::open(&UdpConfig { bind, ..self.udp })?);
            let config = self.config.clone();
            return Ok(Opened { driver, config, first_id: None, near: self.near() });
        };
        let config = self.config.to_builder().profile(Profile::Kernel).build()?;
        let driver = Box::new(Raw::open(&RawConfig { bind, ..raw })?);
        let first_id = Some(driver.first_id());
        Ok(Opened { driver, config, first_id, near: None })
    }

    /// Settings of the way through memory, if there shall be one.
    fn near(&self) -> Option<apus_local::LocalConfig> {
        let wanted = self.local && self.config.profile() == Profile::Udp;
        wanted.then(|| self.local_config.clone())
    }

    /// The parts that each kind of endpoint starts in its own way.
    pub(crate) fn shard(&self, opened: Opened, poll: PollMode) -> Result<Arc<Shard>, BindError> {
        let address = opened.driver.local_addr();
        let quotas = Quotas { receive: self.receive_batch, ..Quotas::DEFAULT };
        let Self { serve: serving, max_queueing, triggers, .. } = *self;
        let settings = Settings { quotas, serving, max_queueing, triggers };
        let keeping = self.keep_traces()?;
        Shard::new(opened, poll, settings, keeping)
            .map(Arc::new)
            .map_err(|source| BindError::Start { address, source })
    }

    /// Has traces left behind, if they shall be.
    fn keep_traces(&self) -> Result<Option<AutoSave>, BindError> {
        let Some(files) = &self.trace_files else { return Ok(None) };
        let failed = |source| BindError::TraceFiles { folder: files.folder().to_owned(), source };
        auto_save::start(files.clone()).map(Some).map_err(failed)
    }
}
