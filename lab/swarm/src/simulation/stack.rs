//! Protocol on an observed host: apus, or a model of the Linux module.
//!
//! Both have the same interface, except that the module has no limits and cannot abandon requests.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use apus_driver::{PeerLife, Session};
use apus_proto::probe::ProbeFilter;
use apus_proto::{
    self as proto, CommandError, Datagram, Event, Execution, FailureKind, Instant, RpcError,
    RpcKey, StatedLife, Transport, Unreachable,
};
use bytes::Bytes;

use crate::address::{address, host_at};
use crate::ends::Ends;
use crate::scenario::Scenario;
use apus_sim::host::PORT;
use apus_sim::kernel::{self, Module, ModuleRpcKey, Objection};
use apus_sim::message::HostId;
use apus_workload::time::Nanos;

/// The id of a module's first call, in each of its lives (HM `homa_utils.c` `homa_init`).
const FIRST_ID: u64 = 2;

/// The protocol of a host.
#[derive(Debug)]
pub(crate) enum Stack {
    Apus(Box<Transport>, View),
    Kernel(Box<Module>),
}

/// How an end addresses other ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    ends: Ends,
    own: HostId,
}

/// Identifies an RPC at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RpcHandle {
    Apus(RpcKey),
    Kernel(ModuleRpcKey),
}

/// Event for the application or the driver.
#[derive(Debug)]
pub(super) enum StackEvent {
    Request { rpc: RpcHandle, from: HostId, id: Option<u64>, payload: Bytes },
    Response { cookie: u64, payload: Bytes },
    Failed { cookie: u64, error: RpcError },
    NewPeer(SocketAddr),
    Room,
    Nothing,
}

/// Parameters of a call.
pub(super) struct CallRequest {
    pub(super) to: HostId,
    pub(super) payload: Bytes,
    pub(super) cookie: u64,
    pub(super) deadline: Option<Nanos>,
    pub(super) idempotent: bool,
}

/// A packet for the driver.
pub(super) struct OutgoingPacket {
    pub(super) to: HostId,
    pub(super) priority: u8,
    /// Whether switches may mark it (ECN).
    pub(super) may_be_marked: bool,
    /// Header and payload.
    pub(super) bytes: Bytes,
    pub(super) header_len: usize,
    /// Length of the longest datagram that it may share; 0 if it needs a separate datagram.
    pub(super) coalesce: usize,
}

impl View {
    fn address_of(&self, end: HostId) -> SocketAddr {
        self.ends.address_of(end)
    }

    /// Returns the end at an address.
    pub(super) fn at(&self, address: SocketAddr) -> HostId {
        self.ends.at(self.own, address)
    }
}

/// Returns the address of a host.
fn ip(host: HostId) -> IpAddr {
    address(host).ip()
}

impl Stack {
    /// Creates the protocol of an end's incarnation.
    pub(super) fn boot(scenario: &Scenario, id: HostId, incarnation: u64, now: Nanos) -> Self {
        // Each life of each end has its own seed.
        let seed = scenario.seed.wrapping_mul(0xd134_2543_de82_ef95)
            ^ (incarnation << 32 | u64::from(id)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        if scenario.kernel_hosts.contains(&id) {
            let segment = scenario.packet_limit - apus_wire::DATA_HEADER_LEN as u32;
            let module = Module::new(PORT, segment, FIRST_ID).ticking_at(seed >> 32);
            return Self::Kernel(Box::new(module));
        }
        let view = View { ends: scenario.ends(), own: id };
        let port = view.address_of(id).port();
        let mut transport = Transport::new(scenario.config.clone(), port, seed.into());
        transport.set_birth(Instant::from_nanos(now));
        if scenario.attack.is_some() {
            transport.set_probe_filter(Some(ProbeFilter::RARE));
        }
        if scenario.has_link_rate {
            let mbps = scenario.fabric.topology.host_rate.mbps();
            transport.set_link_rate(u32::try_from(mbps).unwrap_or(u32::MAX));
        }
        Self::Apus(Box::new(transport), view)
    }

    /// Receives ICMP: the port of calls from `module` is closed. The module itself ignores it here.
    pub(super) fn report_closed_port(&mut self, now: Nanos, module: HostId) {
        if let Self::Apus(transport, _) = self {
            let client = SocketAddr::new(ip(module), kernel::CLIENT_PORT);
            transport.handle_unreachable(Instant::from_nanos(now), client, Unreachable::PortClosed);
        }
    }

    /// Returns the module, if the host runs it.
    pub(crate) fn kernel(&self) -> Option<&Module> {
        match self {
            Self::Kernel(module) => Some(module),
            Self::Apus(..) => None,
        }
    }

    /// Makes a call. Returns its local handle, and its id on the wire.
    pub(super) fn call(
        &mut self,
        now: Nanos,
        request: CallRequest,
    ) -> Result<(RpcHandle, Option<u64>), CommandError> {
        match self {
            Self::Apus(transport, view) => {
                let at = Instant::from_nanos(now);
                let call = proto::Call {
                    to: view.address_of(request.to),
                    payload: request.payload.into(),
                    cookie: request.cookie,
                    deadline: request.deadline.map(|after| at + Duration::from_nanos(after)),
                    idempotent: request.idempotent,
                };
                let rpc = transport.call(at, call).map_err(|rejected| rejected.reason)?;
                Ok((RpcHandle::Apus(rpc), transport.info_of(rpc).map(|info| info.id)))
            }
            Self::Kernel(module) => {
                let to = (ip(request.to), PORT);
                let deadline = request.deadline.map(|after| now + after);
                let name = module.call(now, to, request.payload, request.cookie, deadline);
                Ok((RpcHandle::Kernel(name), Some(name.id)))
            }
        }
    }

    /// Replies to a request.
    pub(super) fn reply(
        &mut self,
        now: Nanos,
        rpc: RpcHandle,
        payload: Bytes,
    ) -> Result<(), CommandError> {
        match (self, rpc) {
            (Self::Apus(transport, _), RpcHandle::Apus(rpc)) => {
                let replied = transport.reply(Instant::from_nanos(now), rpc, payload.into());
                replied.map_err(|rejected| rejected.reason)
            }
            (Self::Kernel(module), RpcHandle::Kernel(name)) => {
                let lives = module.reply(now, name, payload);
                lives.then_some(()).ok_or(CommandError::UnknownRpc)
            }
            _ => Err(CommandError::UnknownRpc),
        }
    }

    /// Abandons a request. Returns whether it was still open, or `None` if the protocol cannot
    /// abandon requests.
    pub(super) fn abandon(&mut self, now: Nanos, rpc: RpcHandle) -> Option<bool> {
        match (self, rpc) {
            (Self::Apus(transport, _), RpcHandle::Apus(rpc)) => {
                Some(transport.abandon(Instant::from_nanos(now), rpc).is_ok())
            }
            _ => None,
        }
    }

    /// Cancels a call; returns `false` if it has ended.
    pub(super) fn cancel(&mut self, now: Nanos, rpc: RpcHandle) -> bool {
        match (self, rpc) {
            (Self::Apus(transport, _), RpcHandle::Apus(rpc)) => {
                transport.cancel(Instant::from_nanos(now), rpc).is_ok()
            }
            (Self::Kernel(module), RpcHandle::Kernel(name)) => module.abort(name),
            _ => false,
        }
    }

    /// Shuts the endpoint down. A module does not end with its applications.
    pub(super) fn shut_down(&mut self, now: Nanos) {
        if let Self::Apus(transport, _) = self {
            transport.shut_down(Instant::from_nanos(now));
        }
    }

    /// Reports that the application has consumed a message of `bytes`.
    pub(super) fn payload_consumed(&mut self, bytes: usize) {
        if let Self::Apus(transport, _) = self {
            transport.payload_consumed(bytes);
        }
    }

    /// Returns the open calls: local handle, server, id on the wire.
    pub(super) fn open_calls(&self) -> Vec<(RpcHandle, HostId, u64)> {
        use apus_wire::Role;
        match self {
            Self::Apus(transport, view) => {
                let calls = transport.info().into_iter().filter(|info| info.role == Role::Client);
                calls.map(|info| (RpcHandle::Apus(info.rpc), view.at(info.peer), info.id)).collect()
            }
            Self::Kernel(module) => {
                let calls = module.live().filter(|name| name.role == Role::Client);
                calls.map(|name| (RpcHandle::Kernel(name), host_of(name.peer), name.id)).collect()
            }
        }
    }

    /// Handles a datagram, marked by a switch or not. Returns the module's objection to its packet.
    pub(super) fn receive(
        &mut self,
        now: Nanos,
        from: HostId,
        bytes: &[u8],
        is_marked: bool,
    ) -> Option<Objection> {
        match self {
            Self::Apus(transport, view) => {
                let from = view.address_of(from);
                let now = Instant::from_nanos(now);
                transport.handle_datagram(now, Datagram { from, bytes, is_marked });
                None
            }
            Self::Kernel(module) => module.handle_packet(now, ip(from), bytes).err(),
        }
    }

    /// Continues in the session established by a handshake with a peer. A module has no sealing.
    pub(super) fn establish_session(&mut self, now: Nanos, peer: HostId, session: Session) {
        if let Self::Apus(transport, view) = self {
            let peer = view.address_of(peer);
            let life = session.life.map(|PeerLife { age, stated_within, is_other }| StatedLife {
                age,
                stated_within,
                is_other,
            });
            transport.establish_session(Instant::from_nanos(now), peer, session.number, life);
        }
    }

    /// Returns the next event.
    pub(super) fn poll(&mut self) -> Option<StackEvent> {
        match self {
            Self::Apus(transport, view) => transport.poll_event().map(|event| match event {
                Event::Request { rpc, from, payload } => {
                    let id = transport.info_of(rpc).map(|info| info.id);
                    StackEvent::Request {
                        rpc: RpcHandle::Apus(rpc),
                        from: view.at(from),
                        id,
                        payload,
                    }
                }
                Event::Response { cookie, payload, .. } => StackEvent::Response { cookie, payload },
                Event::Failed { cookie, error, .. } => StackEvent::Failed { cookie, error },
                Event::NewPeer(peer) => StackEvent::NewPeer(peer),
                Event::Room => StackEvent::Room,
                _ => StackEvent::Nothing,
            }),
            Self::Kernel(module) => module.poll_event().map(|event| match event {
                kernel::ModuleEvent::Request { rpc, payload } => {
                    let from = host_of(rpc.peer);
                    StackEvent::Request {
                        rpc: RpcHandle::Kernel(rpc),
                        from,
                        id: Some(rpc.id),
                        payload,
                    }
                }
                kernel::ModuleEvent::Response { cookie, payload } => {
                    StackEvent::Response { cookie, payload }
                }
                kernel::ModuleEvent::Failed { cookie, late } => {
                    // The module reports an errno, but not whether the request was executed.
                    let reason = if late {
                        FailureKind::DeadlineExceeded
                    } else {
                        FailureKind::PeerSilent { silent_ms: 100, resends: 19 }
                    };
                    StackEvent::Failed {
                        cookie,
                        error: RpcError { kind: reason, execution: Execution::Unknown },
                    }
                }
            }),
        }
    }

    /// Returns the next burst.
    pub(super) fn burst(&mut self, now: Nanos) -> Vec<OutgoingPacket> {
        match self {
            Self::Apus(transport, view) => {
                let Some(transmit) = transport.poll_transmit(Instant::from_nanos(now)) else {
                    return Vec::new();
                };
                let (to, priority) = (view.at(transmit.to()), transmit.priority());
                let may_be_marked = transmit.traffic_class() & 0b11 != 0;
                let payload = transmit.payload().collect::<Vec<_>>().concat();
                let mut pieces = payload.chunks(transmit.segment().max(1));
                let (header_len, coalesce) = (transmit.header_len(), transmit.coalesce());
                let packet = |header: &[u8]| {
                    let bytes = [header, pieces.next().unwrap_or(&[])].concat().into();
                    OutgoingPacket { to, priority, may_be_marked, bytes, header_len, coalesce }
                };
                transmit.headers().chunks(header_len).map(packet).collect()
            }
            Self::Kernel(module) => {
                let packet = module.transmit(now).map(|packet| OutgoingPacket {
                    to: host_of(packet.to),
                    priority: packet.priority,
                    may_be_marked: false,
                    bytes: packet.bytes,
                    header_len: packet.header_len,
                    coalesce: 0,
                });
                packet.into_iter().collect()
            }
        }
    }

    /// Reports the size of the socket's buffer.
    pub(super) fn set_receive_buffer(&mut self, bytes: u64) {
        if let Self::Apus(transport, _) = self {
            transport.set_receive_buffer(bytes as usize);
        }
    }

    /// Reports that the socket has dropped packets before `at`.
    pub(super) fn handle_overflow(&mut self, at: Nanos) {
        if let Self::Apus(transport, _) = self {
            transport.handle_overflow(Instant::from_nanos(at));
        }
    }

    /// Reports that no packet was unread at `at`.
    pub(super) fn begin_reading(&mut self, at: Nanos) {
        if let Self::Apus(transport, _) = self {
            transport.begin_reading(Instant::from_nanos(at));
        }
    }

    /// Reports that everything that had arrived by `at` has been received.
    pub(super) fn finish_reading(&mut self, at: Nanos) {
        if let Self::Apus(transport, _) = self {
            transport.finish_reading(Instant::from_nanos(at));
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        match self {
            Self::Apus(transport, _) => transport.next_timeout().map(|(at, _)| at.as_nanos()),
            Self::Kernel(module) => module.next_timeout(),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        match self {
            Self::Apus(transport, _) => transport.handle_timeout(Instant::from_nanos(now)),
            Self::Kernel(module) => module.handle_timeout(now),
        }
    }
}

/// Returns the host at an address.
pub(super) fn host_of(ip: IpAddr) -> HostId {
    host_at(SocketAddr::new(ip, PORT))
}
