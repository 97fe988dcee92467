//! What runs on a host that is watched: apus, or a model of the Linux module?
//!
//! Applications see no difference, but for what the module does not offer: it has no room that could be used
//! up, and a request cannot be let go.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use apus_proto::{
    self as proto, CommandError, Event, Execution, FailureKind, Instant, RpcError, RpcKey,
    Transport,
};
use bytes::Bytes;

use apus_sim::host::{PORT, address, host_at};
use apus_sim::kernel::{self, Module, Objection, RpcName};
use apus_sim::message::HostId;
use apus_workload::time::Nanos;

/// A protocol on a host.
#[derive(Debug)]
pub(crate) enum Stack {
    Apus(Box<Transport>),
    Kernel(Box<Module>),
}

/// Names an RPC at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Handle {
    Apus(RpcKey),
    Kernel(RpcName),
}

/// What the application, or the driver, learns.
#[derive(Debug)]
pub(super) enum Told {
    Request { rpc: Handle, from: HostId, id: Option<u64>, payload: Bytes },
    Response { cookie: u64, payload: Bytes },
    Failed { cookie: u64, error: RpcError },
    NewPeer(SocketAddr),
    Room,
    Nothing,
}

/// What a call is to be.
pub(super) struct Wish {
    pub(super) to: HostId,
    pub(super) payload: Bytes,
    pub(super) cookie: u64,
    pub(super) deadline: Option<Nanos>,
    pub(super) idempotent: bool,
}

/// A packet on its way to the driver.
pub(super) struct Leaving {
    pub(super) to: HostId,
    pub(super) priority: u8,
    /// Header and payload.
    pub(super) bytes: Bytes,
    pub(super) header_len: usize,
}

/// Where a host's network address is.
fn ip(host: HostId) -> IpAddr {
    address(host).ip()
}

impl Stack {
    /// The transport, if it is apus.
    pub(crate) fn apus(&self) -> Option<&Transport> {
        match self {
            Self::Apus(transport) => Some(transport),
            Self::Kernel(_) => None,
        }
    }

    /// The module, if it is that.
    pub(crate) fn kernel(&self) -> Option<&Module> {
        match self {
            Self::Kernel(module) => Some(module),
            Self::Apus(_) => None,
        }
    }

    /// Makes a call; its name here, and its id on the wire.
    pub(super) fn call(
        &mut self,
        now: Nanos,
        wish: Wish,
    ) -> Result<(Handle, Option<u64>), CommandError> {
        match self {
            Self::Apus(transport) => {
                let at = Instant::from_nanos(now);
                let call = proto::Call {
                    to: address(wish.to),
                    payload: wish.payload.into(),
                    cookie: wish.cookie,
                    deadline: wish.deadline.map(|after| at + Duration::from_nanos(after)),
                    idempotent: wish.idempotent,
                };
                let rpc = transport.call(at, call).map_err(|rejected| rejected.reason)?;
                Ok((Handle::Apus(rpc), transport.info_of(rpc).map(|info| info.id)))
            }
            Self::Kernel(module) => {
                let to = (ip(wish.to), PORT);
                let deadline = wish.deadline.map(|after| now + after);
                let name = module.call(now, to, wish.payload, wish.cookie, deadline);
                Ok((Handle::Kernel(name), Some(name.id)))
            }
        }
    }

    /// Answers a request.
    pub(super) fn reply(
        &mut self,
        now: Nanos,
        rpc: Handle,
        payload: Bytes,
    ) -> Result<(), CommandError> {
        match (self, rpc) {
            (Self::Apus(transport), Handle::Apus(rpc)) => {
                let replied = transport.reply(Instant::from_nanos(now), rpc, payload.into());
                replied.map_err(|rejected| rejected.reason)
            }
            (Self::Kernel(module), Handle::Kernel(name)) => {
                let lives = module.reply(now, name, payload);
                lives.then_some(()).ok_or(CommandError::UnknownRpc)
            }
            _ => Err(CommandError::UnknownRpc),
        }
    }

    /// Lets a request go, if that can be done; `None` if there is no such thing here.
    pub(super) fn abandon(&mut self, now: Nanos, rpc: Handle) -> Option<bool> {
        match (self, rpc) {
            (Self::Apus(transport), Handle::Apus(rpc)) => {
                Some(transport.abandon(Instant::from_nanos(now), rpc).is_ok())
            }
            _ => None,
        }
    }

    /// Lets a call go; `false` if it has ended.
    pub(super) fn cancel(&mut self, now: Nanos, rpc: Handle) -> bool {
        match (self, rpc) {
            (Self::Apus(transport), Handle::Apus(rpc)) => {
                transport.cancel(Instant::from_nanos(now), rpc).is_ok()
            }
            (Self::Kernel(module), Handle::Kernel(name)) => module.abort(name),
            _ => false,
        }
    }

    /// The application has taken so many bytes.
    pub(super) fn taken(&mut self, bytes: usize) {
        if let Self::Apus(transport) = self {
            transport.payload_consumed(bytes);
        }
    }

    /// Calls that live: name here, server, id on the wire.
    pub(super) fn open_calls(&self) -> Vec<(Handle, HostId, u64)> {
        use apus_wire::Role;
        match self {
            Self::Apus(transport) => {
                let calls = transport.info().into_iter().filter(|info| info.role == Role::Client);
                calls.map(|info| (Handle::Apus(info.rpc), host_at(info.peer), info.id)).collect()
            }
            Self::Kernel(module) => {
                let calls = module.live().filter(|name| name.role == Role::Client);
                calls.map(|name| (Handle::Kernel(name), host_of(name.peer), name.id)).collect()
            }
        }
    }

    /// A packet has come; what the module has against it.
    pub(super) fn receive(&mut self, now: Nanos, from: HostId, bytes: &[u8]) -> Option<Objection> {
        match self {
            Self::Apus(transport) => {
                transport.handle_packet(Instant::from_nanos(now), address(from), bytes);
                None
            }
            Self::Kernel(module) => module.handle_packet(now, ip(from), bytes).err(),
        }
    }

    /// What there is to be told.
    pub(super) fn poll(&mut self) -> Option<Told> {
        match self {
            Self::Apus(transport) => transport.poll_event().map(|event| match event {
                Event::Request { rpc, from, payload } => {
                    let id = transport.info_of(rpc).map(|info| info.id);
                    Told::Request { rpc: Handle::Apus(rpc), from: host_at(from), id, payload }
                }
                Event::Response { cookie, payload, .. } => Told::Response { cookie, payload },
                Event::Failed { cookie, error, .. } => Told::Failed { cookie, error },
                Event::NewPeer(peer) => Told::NewPeer(peer),
                Event::Room => Told::Room,
                _ => Told::Nothing,
            }),
            Self::Kernel(module) => module.poll_event().map(|event| match event {
                kernel::Event::Request { rpc, payload } => {
                    let from = host_of(rpc.peer);
                    Told::Request { rpc: Handle::Kernel(rpc), from, id: Some(rpc.id), payload }
                }
                kernel::Event::Response { cookie, payload } => Told::Response { cookie, payload },
                kernel::Event::Failed { cookie, late } => {
                    // It tells its callers an errno, and nothing about what became of the request.
                    let reason = if late {
                        FailureKind::DeadlineExceeded
                    } else {
                        FailureKind::PeerSilent { silent_ms: 100, resends: 19 }
                    };
                    Told::Failed {
                        cookie,
                        error: RpcError { kind: reason, execution: Execution::Unknown },
                    }
                }
            }),
        }
    }

    /// Everything at once that leaves now.
    pub(super) fn burst(&mut self, now: Nanos) -> Vec<Leaving> {
        match self {
            Self::Apus(transport) => {
                let Some(transmit) = transport.poll_transmit(Instant::from_nanos(now)) else {
                    return Vec::new();
                };
                let (to, priority) = (host_at(transmit.to()), transmit.priority());
                let payload = transmit.payload().collect::<Vec<_>>().concat();
                let mut pieces = payload.chunks(transmit.segment().max(1));
                let header_len = transmit.header_len();
                let packet = |header: &[u8]| {
                    let bytes = [header, pieces.next().unwrap_or(&[])].concat().into();
                    Leaving { to, priority, bytes, header_len }
                };
                transmit.headers().chunks(header_len).map(packet).collect()
            }
            Self::Kernel(module) => {
                let packet = module.transmit(now).map(|packet| Leaving {
                    to: host_of(packet.to),
                    priority: packet.priority,
                    bytes: packet.bytes,
                    header_len: packet.header_len,
                });
                packet.into_iter().collect()
            }
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Nanos> {
        match self {
            Self::Apus(transport) => transport.next_timeout().map(|(at, _)| at.as_nanos()),
            Self::Kernel(module) => module.next_timeout(),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Nanos) {
        match self {
            Self::Apus(transport) => transport.handle_timeout(Instant::from_nanos(now)),
            Self::Kernel(module) => module.handle_timeout(now),
        }
    }
}

/// Who lives at a network address.
pub(super) fn host_of(ip: IpAddr) -> HostId {
    host_at(SocketAddr::new(ip, PORT))
}
