//! The builder of endpoints: a setter for each option.

use super::engine::Engine;
use super::options::EndpointOptions;
use super::shards::Shards;
use crate::endpoint::Endpoint;
use crate::engine::waiting::PollMode;
use crate::overload::Quotas;
use crate::trace::{FreezeTriggers, TraceFiles};
use apus_proto::Config;
#[cfg(doc)]
use apus_socket::Raw;
use apus_socket::{RawConfig, UdpConfig};
use std::marker::PhantomData;
use std::time::Duration;

/// Options for a new endpoint; every option has a default.
///
/// [`Endpoint::builder`](crate::Endpoint::builder) returns a builder of blocking endpoints,
/// [`tokio::Endpoint::builder`](crate::tokio::Endpoint::builder) a builder of async endpoints.
/// Three methods open the endpoint: `bind` opens one that serves requests, `client` one that does
/// not, and `with_driver` one over any driver. A builder of async endpoints has them with `.await`.
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
pub struct EndpointBuilder<E = Endpoint> {
    pub(crate) options: EndpointOptions,
    endpoint: PhantomData<fn() -> E>,
}

impl EndpointBuilder {
    /// Default of [`EndpointBuilder::receive_batch`]: 32 packets, the quota of a pass of the loop
    /// ([`Quotas::DEFAULT`] has the rationale).
    pub const RECEIVE_BATCH: usize = Quotas::DEFAULT.receive;
}

impl Default for EndpointBuilder {
    /// Returns what [`Endpoint::builder`] returns.
    fn default() -> Self {
        Self::new()
    }
}

impl<E> EndpointBuilder<E> {
    pub(crate) fn new() -> Self {
        Self { options: EndpointOptions::default(), endpoint: PhantomData }
    }

    /// Sets the parameters of the protocol, such as the limits for messages, buffers and peers. The
    /// default is [`Config::default`].
    pub fn config(mut self, config: Config) -> Self {
        self.options.config = config;
        self
    }

    /// Sets the options of the UDP socket, such as buffer sizes. Its address comes from
    /// [`EndpointBuilder::bind`]; only [`EndpointBuilder::client`] uses [`UdpConfig::bind`].
    pub const fn udp(mut self, udp: UdpConfig) -> Self {
        self.options.udp = udp;
        self
    }

    /// Uses raw IP (protocol 146) instead of UDP, as the Linux kernel's Homa module does. Requires
    /// the capability CAP_NET_RAW.
    ///
    /// The endpoint then speaks the kernel profile, independent of [`EndpointBuilder::config`]:
    /// messages have at most 1,000,000 bytes, and clients of refused requests get no reason. The
    /// address comes from [`EndpointBuilder::bind`]; [`EndpointBuilder::client`] takes the address
    /// in `raw`.
    ///
    /// An endpoint speaks one of the two IP protocols: bound to `0.0.0.0`, the default, it reaches
    /// IPv4 peers, bound to `[::]` IPv6 peers. The port of a peer's address is its Homa port. The
    /// ids of calls come from a range that no other endpoint of the host has ([`Raw::first_id`]).
    ///
    /// Opening the endpoint starts a thread, which answers in place of endpoints of the host whose
    /// process was killed (RPC-19); it sleeps while another endpoint of the host does.
    ///
    /// Calls never go through shared memory ([`EndpointBuilder::local`]): that path is bound to UDP
    /// addresses, and an endpoint with the same address and port over UDP is another endpoint.
    pub const fn raw(mut self, raw: RawConfig) -> Self {
        self.options.raw = Some(raw);
        self
    }

    /// Sets how threads wait: spinning, sleeping, or spinning for a time and then sleeping. The
    /// default is [`PollMode::Hybrid`] with 50 µs.
    pub const fn poll_mode(mut self, poll: PollMode) -> Self {
        self.options.poll = poll;
        self
    }

    /// Sets which threads run the endpoint's loop. The default is [`Engine::Waiters`].
    pub const fn engine(mut self, engine: Engine) -> Self {
        self.options.engine = engine;
        self
    }

    /// Sets the number of shards: sockets, each with its own instance of the protocol and its own
    /// loop, so that the endpoint uses several cores. A number, or [`Shards::Auto`]. The default is
    /// 1.
    ///
    /// All sockets of a serving endpoint are bound to one port. The system assigns each client, by
    /// its address and port, to one of them, so the load spreads over the shards if there are
    /// several times as many clients. A client has a socket at a separate port for each shard, and
    /// the sockets of one client are spread evenly. A serving endpoint with several shards makes
    /// its calls from the same number of additional sockets, which are opened when it makes the
    /// first call.
    ///
    /// Each thread has one shard for its calls and its waits. It receives the messages of that
    /// shard first, and messages of another shard if that shard's threads are busy. Start at least
    /// as many receiving threads as there are shards. All else is unchanged: requests are executed
    /// at most once, and any thread may reply to any request.
    ///
    /// Limits of [`EndpointBuilder::config`] hold for each shard, except that all share
    /// `max_incoming`. Shared memory ([`EndpointBuilder::local`]) leads to the first shard of a
    /// server. An endpoint over raw IP, in the kernel profile or with a driver of the application
    /// has one shard, whatever is set here.
    pub fn shards(mut self, shards: impl Into<Shards>) -> Self {
        self.options.shards = shards.into();
        self
    }

    /// Has the endpoint schedule as one with all endpoints of this host that have the same group
    /// name. The default is none.
    ///
    /// Processes of a host share its link, the switch port in front of it, and the queue of its
    /// interface. In a group they share one `max_incoming`, grant the shortest messages of all
    /// first, and count the interface's backlog together. So short messages stay as fast as if one
    /// process did all of it. Give the endpoints of each network interface a separate group, by its
    /// name for example.
    ///
    /// A group belongs to the network namespace, and to the processes that
    /// [`LocalConfig::peer_policy`](crate::local::LocalConfig) allows: by default the processes of
    /// one user. They share a page of memory, and a thread of each process waits for the end of the
    /// process that hands it out. A process that dies gives its share back within a second. A
    /// process that writes garbage to the page takes no more than an equal part of the host from
    /// the others.
    ///
    /// A page has room for 63 shards of endpoints that are busy at once; further ones schedule
    /// alone. The name has at most 80 bytes; an empty one is none.
    pub fn host_group(mut self, name: impl Into<String>) -> Self {
        self.options.host_group = Some(name.into()).filter(|name| !name.is_empty());
        self
    }

    /// Sets the number of packets after which a pass of the loop stops receiving, handles them and
    /// transmits. The default is [`EndpointBuilder::RECEIVE_BATCH`], 32; 0 counts as 1.
    ///
    /// The limit is not exact: the UDP driver receives up to 16 datagrams at once, each with all
    /// packets that receive offload has merged into it.
    pub const fn receive_batch(mut self, packets: usize) -> Self {
        self.options.receive_batch = packets;
        self
    }

    /// Sets whether requests are accepted; if not, their clients get a corresponding error. The
    /// default is `true`.
    pub const fn serve(mut self, serve: bool) -> Self {
        self.options.serve = serve;
        self
    }

    /// Sets for how long requests may wait for a thread of the application while far more arrive
    /// than it serves. The default is 500 µs; [`Duration::MAX`] disables the limit.
    ///
    /// With the limit, a server that is offered several times its capacity still serves as many
    /// requests as at capacity, each after a short wait. It takes effect when the queue reaches 200
    /// times the number of requests that the application receives in this time: at least 320, and
    /// 16,384 at most. Shorter queues, as after a pause of some milliseconds, are served late and
    /// not refused. From then on the queue holds the number of requests that the application
    /// receives in this time, and at least 16. Every further request is refused at once with
    /// [`Refusal::Overloaded`](crate::Refusal::Overloaded): it was not executed and may be sent
    /// elsewhere. Replies may be held back during overload to leave together, for up to 125 µs or
    /// until their thread receives its next request.
    ///
    /// The limit ends when the queue has not been full for 10 ms. It has no effect while the
    /// application receives no requests at all.
    pub const fn max_queueing(mut self, time: Duration) -> Self {
        self.options.max_queueing = time;
        self
    }

    /// Sets the timeout of calls without a [deadline](crate::CallOptions::deadline): they then fail
    /// with [`FailureKind::DeadlineExceeded`](crate::FailureKind::DeadlineExceeded). The default is
    /// 60 s; [`Duration::MAX`] disables it. With [`Duration::ZERO`] such a call fails at once: it is
    /// not executed, and nothing is sent.
    ///
    /// Calls to a peer that ends or becomes unreachable fail sooner: the limit is for servers that
    /// are alive and do not reply. It adds no cost to a call, and is not exact. A call fails up to
    /// a quarter later, and time while the process is stopped is mostly not counted. For exact
    /// limits there is [`CallOptions::timeout`](crate::CallOptions::timeout).
    pub const fn call_timeout(mut self, time: Duration) -> Self {
        self.options.call_timeout = time;
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
        self.options.core_share = percent;
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
        self.options.local = local;
        self
    }

    /// Sets the options of the shared-memory path ([`EndpointBuilder::local`]): sizes of the rings,
    /// number of peers, and the users whose processes are accepted. The default accepts only
    /// processes of the same user. The endpoint sets `limits` and `identity` itself.
    pub fn local_config(mut self, config: apus_local::LocalConfig) -> Self {
        self.options.local_config = config;
        self
    }

    /// Sets which events freeze the [time trace](crate::trace) of the process, and whether peers
    /// may. The default is none.
    pub const fn freeze_triggers(mut self, triggers: FreezeTriggers) -> Self {
        self.options.triggers = triggers;
        self
    }

    /// Writes a file whenever a [trigger](EndpointBuilder::freeze_triggers) freezes the trace of
    /// the process, then resumes recording. The default is no files. [`TraceFiles`] describes their
    /// names and limits.
    ///
    /// One thread per process, `apus-traces`, writes the files. A trace that is frozen when the
    /// last endpoint ends is still written.
    pub fn trace_files(mut self, files: TraceFiles) -> Self {
        self.options.trace_files = Some(files);
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
        self.options.observable = observable;
        self
    }

    /// Seals every packet ([`security`](crate::security)): peers that do not prove an identity that
    /// `security` admits are not talked to. The default is packets in the clear. Not available with
    /// the kernel profile or raw IP.
    ///
    /// Shared memory is then used only if the settings allow it (`plaintext = "local-only"`).
    #[cfg(feature = "tls")]
    pub fn security(mut self, security: crate::security::Security) -> Self {
        self.options.sealer = crate::security::Sealer(Some(security));
        self
    }

    /// Sets the id of the endpoint's first call, for [`EndpointBuilder::with_driver`] in the kernel
    /// profile; each further call has the next even id.
    ///
    /// In the kernel profile a server identifies a call by the client's host and its id
    /// (HM `homa_rpc.c` `homa_rpc_find_server`), so no two endpoints of a host may ever use the
    /// same id. A driver that is built on [`Raw`] passes on [`Raw::first_id`]. By default the first
    /// id is drawn at random between 2^61 and 2^62. Two endpoints with 10^9 calls each then share
    /// an id in two cases of 10^9, and calls of the kernel module on the same host differ only
    /// because it counts from 2.
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
        self.options.first_id = Some(id);
        self
    }
}
