//! Load over apus.
//!
//! One endpoint serves all purposes of a node, with default parameters unless the experiment varies
//! one. The server answers under a cork, so that ready replies leave together, unless it works on
//! each request: then each reply leaves as soon as it is ready. Calls due at the same time leave
//! together, as with TCP. Payload is shared, not copied.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use apus::{
    Bytes, CallOptions, Completion, Config, ConfigError, Endpoint, EndpointBuilder, FailureKind,
    PARAMETERS, Parameter, Refusal, RpcError, Settings, UdpConfig,
};
use apus_wire::Kind;

use super::interface::{
    Client, Completions, Node, NodeOptions, Start, Transport, differs, payload,
};
use super::work::Work;
use crate::contenders::keys::ThrowAwayKeys;
use apus_measure::exchange::{Path, configured, server};
use apus_testbed::error::Error;
use apus_testbed::process::Stop;

/// Calls between endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apus {
    /// Unencrypted; nodes of one host schedule together.
    Clear,
    /// Every packet is sealed, with the keys of [`NodeOptions::keys`].
    Sealed,
    /// Unencrypted; nodes of one host schedule independently.
    Apart,
}

impl Apus {
    /// Name of sealed endpoints.
    pub const SEALED: &'static str = "apus-sealed";

    /// Name of endpoints that schedule apart from others of their host.
    pub const APART: &'static str = "apus-apart";

    /// Returns the apus transport of this name, if there is one.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [Self::Clear, Self::Sealed, Self::Apart];
        all.into_iter().find(|apus| apus.name() == name)
    }
}

impl Transport for Apus {
    fn name(&self) -> String {
        match self {
            Self::Clear => "apus",
            Self::Sealed => Self::SEALED,
            Self::Apart => Self::APART,
        }
        .to_owned()
    }

    fn settings(&self) -> String {
        let more = match self {
            Self::Clear => "; the nodes of a host schedule together",
            Self::Sealed => {
                "; every packet sealed (TLS 1.3, AES-128-GCM); the nodes of a host schedule together"
            }
            Self::Apart => "; each node schedules as if it were alone on its host",
        };
        format!(
            "one endpoint at each node, default parameters except those given; requests that are due leave together, as do \
             replies that are ready, and a reply at once if it took work{more}"
        )
    }

    fn connections(&self, _outstanding: usize) -> usize {
        0
    }

    fn open(&self, opening: &NodeOptions) -> Result<Box<dyn Node>, Error> {
        let address = SocketAddr::from((opening.at, 0));
        let udp = UdpConfig {
            max_ip_packet: opening.mtu,
            receive_coalescing_usecs: of_endpoint(&opening.parameters, &RECEIVE_COALESCING) as u32,
            ..UdpConfig::default()
        };
        let missing = || Error::Peer(format!("{} without keys", Self::SEALED));
        let keys = (*self == Self::Sealed)
            .then(|| opening.keys.as_ref().ok_or_else(missing))
            .transpose()?;
        let security = keys.map(ThrowAwayKeys::security);
        let host_group = opening.host_group.clone().filter(|_| *self != Self::Apart);
        let settings = Settings { security, host_group, ..Settings::default() };
        let settings = configured(&settings, Path::Udp)
            .poll_mode(opening.poll)
            .serve(opening.serve)
            .config(config(opening.link_mbps, &opening.parameters)?)
            .receive_batch(of_endpoint(&opening.parameters, &RECEIVE_BATCH) as usize)
            .udp(udp);
        let endpoint = settings
            .bind(address)
            .map_err(|error| Error::endpoint(format!("open an endpoint at {address}"), error))?;
        Ok(Box::new(ApusNode { endpoint, work: opening.work, compare: opening.compare }))
    }
}

/// Parameter of the endpoint, not of the protocol: packets of a receive batch.
const RECEIVE_BATCH: Parameter = Parameter {
    name: "receive_batch",
    unit: "packets",
    default: EndpointBuilder::RECEIVE_BATCH as u64,
    min: 1,
    max: 1_024,
};

/// Parameter of the socket: maximum delay of packets from the middle of a long message.
const RECEIVE_COALESCING: Parameter =
    Parameter { name: "receive_coalescing_usecs", unit: "µs", default: 0, min: 0, max: 1_000_000 };

/// Parameters of the endpoint rather than of the protocol.
const OF_ENDPOINT: [&Parameter; 2] = [&RECEIVE_BATCH, &RECEIVE_COALESCING];

/// Returns the parameters that can be set by name.
pub fn parameters() -> impl Iterator<Item = &'static Parameter> {
    PARAMETERS.iter().chain(OF_ENDPOINT)
}

/// Checks that the parameters exist and their values are in range.
pub fn check_parameters(parameters: &[(String, u64)]) -> Result<(), Error> {
    config(0, parameters).map(drop)
}

/// Returns the protocol's parameters for the link.
fn config(link_mbps: u32, parameters: &[(String, u64)]) -> Result<Config, Error> {
    let refused =
        |error: ConfigError| Error::Option { option: "param", problem: error.to_string() };
    let mut config = Config::builder().link_mbps(u64::from(link_mbps));
    let is_protocol = |name: &String| OF_ENDPOINT.iter().all(|parameter| name != parameter.name);
    for (name, value) in parameters.iter().filter(|(name, _)| is_protocol(name)) {
        config = config.set(name, *value).map_err(refused)?;
    }
    config.build().map_err(refused)
}

/// Returns the value of a parameter of the endpoint.
fn of_endpoint(parameters: &[(String, u64)], parameter: &Parameter) -> u64 {
    let set = parameters.iter().rev().find(|(name, _)| name == parameter.name);
    set.map_or(parameter.default, |&(_, value)| value)
}

/// An apus endpoint on one host.
struct ApusNode {
    endpoint: Endpoint,
    work: Work,
    /// Whether its clients compare replies.
    compare: bool,
}

impl Node for ApusNode {
    fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    fn serve(&self, _receiver: usize, _stop: &Stop) -> Result<(), Error> {
        if self.work.is_none() {
            let _together = self.endpoint.cork();
            return server::echo(&self.endpoint);
        }
        // A ready reply does not wait for the work on another request.
        server::echo_after(&self.endpoint, || self.work.perform())
    }

    fn shutdown(&self) {
        self.endpoint.shutdown();
    }

    fn counters(&self) -> BTreeMap<String, u64> {
        let metrics = self.endpoint.metrics();
        let (protocol, engine) = (&metrics.protocol, &metrics.engine);
        let sent = Kind::ALL.iter().zip(protocol.packets_sent);
        let sent = sent.map(|(kind, count)| (format!("{kind:?} sent"), count));
        let groups = protocol.recovery.iter().chain(protocol.scheduling.iter());
        let groups = groups.map(|(name, count)| (name.to_owned(), count));
        let engine = [
            ("wait_none", engine.wait_none),
            ("wait_polled", engine.wait_polled),
            ("wait_slept", engine.wait_slept),
            ("handoffs", engine.handoffs),
            ("wakeups", engine.wakeups),
            ("spurious_wakeups", engine.spurious_wakeups),
            ("sleeps", engine.sleeps),
            ("kicks", engine.kicks),
            ("keeper_turns", engine.keeper_turns),
            ("receive_batches", engine.receive_batches),
            ("packets_received", engine.packets_arrived),
            ("quota_exhaustions", engine.quota_exhaustions),
            ("feedback_stops", engine.feedback_stops),
        ];
        let engine = engine.map(|(name, count)| (name.to_owned(), count));
        let driver = metrics.driver.iter().map(|(name, count)| (format!("driver_{name}"), *count));
        let totals = [
            ("dropped".to_owned(), protocol.dropped_total()),
            ("data_bytes".to_owned(), protocol.priority_bytes.iter().sum()),
        ];
        sent.chain(groups).chain(engine).chain(driver).chain(totals).collect()
    }

    fn connect(&self, peers: &[SocketAddr], outstanding: usize) -> Result<Box<dyn Client>, Error> {
        // apus has no connections, but a first call measures the round trip time.
        for &peer in peers {
            self.endpoint
                .call(peer, &[0])
                .map_err(|error| Error::endpoint(format!("call {peer}"), error))?;
        }
        Ok(Box::new(ApusClient {
            endpoint: self.endpoint.clone(),
            peers: peers.to_vec(),
            payload: Bytes::new(),
            expected: vec![(0, 0); outstanding],
            compare: self.compare,
        }))
    }
}

/// A client of some peers.
struct ApusClient {
    endpoint: Endpoint,
    peers: Vec<SocketAddr>,
    /// Buffer that all payloads are slices of.
    payload: Bytes,
    /// Peer and length of each request, by its id.
    expected: Vec<(usize, u32)>,
    /// Whether contents of replies are compared.
    compare: bool,
}

impl ApusClient {
    /// Returns a payload of `size` bytes.
    fn payload(&mut self, size: usize) -> Bytes {
        if self.payload.len() < size {
            self.payload = payload(size.next_power_of_two()).into();
        }
        self.payload.slice(..size)
    }

    /// Starts a request. Returns `false` if the endpoint cannot accept it and `options` forbid
    /// waiting.
    fn send(&mut self, start: Start, options: CallOptions) -> Result<bool, Error> {
        let Start { id, peer, size } = start;
        let payload = self.payload(size as usize);
        self.expected[id as usize] = (peer, size);
        let peer = self.peers[peer];
        match self.endpoint.send_with(peer, payload, u64::from(id), options) {
            Ok(_) => Ok(true),
            Err(error) if error.is_back_pressure() => Ok(false),
            Err(error) => Err(Error::endpoint(format!("send to {peer}"), error)),
        }
    }

    /// Records a call that has ended.
    fn end(&self, completion: Completion, ended: &mut Completions) -> Result<(), Error> {
        let id = completion.cookie as u32;
        let (peer, request) = self.expected[id as usize];
        let peer = self.peers[peer];
        match completion.result {
            Ok(reply) if reply.len() == request as usize => {
                let expected = self.compare.then(|| &self.payload[..reply.len()]);
                if let Some(wrong) = expected.and_then(|expected| differs(peer, &reply, expected)) {
                    return Err(wrong);
                }
                ended.completed.push(id);
            }
            Ok(reply) => {
                let reply = reply.len();
                return Err(Error::Peer(format!("{peer} answered {request} bytes with {reply}")));
            }
            Err(RpcError { kind: FailureKind::Refused(Refusal::Overloaded), .. }) => {
                ended.refused.push(id);
            }
            Err(error) => {
                ended.failed.push(id);
                ended.why.get_or_insert_with(|| format!("call {peer}: {error}"));
            }
        }
        Ok(())
    }
}

impl Client for ApusClient {
    fn start(&mut self, id: u32, peer: usize, size: u32) -> Result<(), Error> {
        self.send(Start { id, peer, size }, CallOptions::new()).map(drop)
    }

    fn start_all(&mut self, starts: &[Start]) -> Result<usize, Error> {
        let endpoint = self.endpoint.clone();
        // A single call leaves immediately.
        let _together = (starts.len() > 1).then(|| endpoint.cork());
        // Waiting for space here would deadlock: this thread also receives the replies, and they
        // need space as well.
        let options = CallOptions::new().no_wait(true);
        for (begun, start) in starts.iter().enumerate() {
            if !self.send(*start, options)? {
                return Ok(begun);
            }
        }
        Ok(starts.len())
    }

    fn poll(&mut self, wait: Duration, ended: &mut Completions) -> Result<(), Error> {
        let broken = |error| Error::endpoint("receive replies".to_owned(), error);
        let mut next = self.endpoint.recv_completion_timeout(wait).map_err(broken)?;
        while let Some(completion) = next {
            self.end(completion, ended)?;
            next = self.endpoint.try_recv_completion().map_err(broken)?;
        }
        Ok(())
    }
}
