//! Reception of packets by the module, and objections to them.

use std::net::IpAddr;

use apus_wire::{
    Ack, AckList, Body, Data, EVERYTHING, Header, Kind, Packet, Profile, Resend, Role, SenderId,
};

use super::event::ModuleEvent;
use super::incoming::Incoming;
use super::module::Module;
use super::objection::Objection;
use super::parameters::{CUTOFF_VERSION, LONGEST};
use super::rpc::{ModuleRpcKey, Rpc, State};
use apus_workload::time::Nanos;

/// Returns whether a packet is too short. RESEND of this module has a level, and an ACK is always
/// full (Rules for peers, items 1 and 21).
fn is_short(kind: Kind, bytes: &[u8]) -> bool {
    bytes.len() < kind.header_len()
}

/// Origin of a packet.
#[derive(Clone, Copy)]
struct From {
    peer: IpAddr,
    /// The module's key of the RPC.
    key: ModuleRpcKey,
    /// Ports of a reply packet.
    ports: (u16, u16),
}

impl From {
    const fn id(&self) -> SenderId {
        self.key.sender_id()
    }
}

impl Module {
    /// Handles a packet without IP header from host `from`.
    ///
    /// # Errors
    ///
    /// The [`Objection`] of the module, or an objection of 8.2 that the module itself does not
    /// detect.
    pub fn handle_packet(
        &mut self,
        now: Nanos,
        from: IpAddr,
        bytes: &[u8],
    ) -> Result<(), Objection> {
        self.now = now;
        let packet = Packet::parse(Profile::Kernel, bytes).map_err(|_| Objection::NoPacket)?;
        let Packet { header, body } = &packet;
        if is_short(body.kind(), bytes) {
            return Err(Objection::NoPacket);
        }
        let from = self.source(from, header)?;
        let used = match body {
            Body::Data(data, payload) => self.on_data(from, data, payload),
            Body::Grant(grant) => self.on_grant(from, grant.offset, grant.priority),
            Body::Resend(resend) => self.on_resend(from, resend),
            Body::RpcUnknown => self.on_unknown(from),
            Body::Busy => self.on_busy(from),
            Body::Cutoffs(cutoffs) => {
                self.peers.entry(from.peer).or_default().set_cutoffs(cutoffs);
                Ok(())
            }
            Body::Freeze => Ok(()),
            Body::NeedAck => self.on_need_ack(from),
            Body::Ack(list) => self.on_ack(from, list),
        };
        self.grant();
        used
    }

    /// Returns the RPC of a packet. Ports only select a socket
    /// (HM `homa_incoming.c` `homa_dispatch_pkts`).
    fn source(&self, peer: IpAddr, header: &Header) -> Result<From, Objection> {
        let role = header.sender_id.sender().peer();
        let port = if role == Role::Server { self.port } else { self.client_port };
        if header.dport != port {
            return Err(Objection::NoSuchPort);
        }
        let key = ModuleRpcKey { peer, id: header.sender_id.client_id(), role };
        Ok(From { peer, key, ports: (header.dport, header.sport) })
    }

    fn on_data(&mut self, from: From, data: &Data, payload: &[u8]) -> Result<(), Objection> {
        let used = self.add(from, data, payload);
        // The ack counts whether or not the data are accepted (HM `homa_incoming.c` `homa_data_pkt`
        // and `homa_dispatch_pkts`).
        let acked = data.ack.map_or(Ok(()), |ack| self.acknowledge(from.peer, ack));
        if data.cutoff_version != CUTOFF_VERSION {
            self.send_cutoffs(from.peer, from.ports, from.id());
        }
        used.and(acked)?;
        if data.is_stripped || data.incoming > data.message_length {
            return Err(Objection::Untruthful);
        }
        if data.cutoff_version > CUTOFF_VERSION {
            return Err(Objection::OtherCutoffs);
        }
        Ok(())
    }

    /// Stores the bytes in their message, and creates the message if they are its first (HM
    /// `homa_incoming.c` `homa_dispatch_pkts`).
    fn add(&mut self, from: From, data: &Data, payload: &[u8]) -> Result<(), Objection> {
        if data.message_length > LONGEST {
            return Err(Objection::TooLong);
        }
        let key = from.key;
        if key.role == Role::Server && !self.rpcs.contains_key(&key) {
            let birth = self.birth();
            let rpc = Rpc::new(State::Incoming, from.ports.0, from.ports.1, birth);
            self.insert(key, rpc);
        }
        let rpc = self.rpcs.get_mut(&key).ok_or(Objection::UnknownRpc)?;
        if key.role == Role::Client && rpc.state == State::Outgoing {
            rpc.state = State::Incoming;
        }
        rpc.silent_ticks = 0;
        if rpc.state != State::Incoming {
            return Err(Objection::TooLate);
        }
        // A module with grants reads the field as it is: 0 permits no byte.
        let incoming = if data.is_stripped { 0 } else { data.incoming };
        let message = rpc.inc.get_or_insert_with(|| Incoming::new(data.message_length, incoming));
        if message.length() != data.message_length {
            return Err(Objection::OtherLength);
        }
        message.granted = message.granted.max(incoming.min(message.length()));
        let allowed = self.allowed.get(&key).copied().unwrap_or_default();
        let beyond = data.offset >= incoming.max(allowed);
        let added = message.add(data.offset, payload);
        if message.length() > incoming {
            self.scheduled.insert(key);
        }
        let complete = message.is_complete();
        self.update(key);
        added?;
        if complete {
            self.complete(key);
        }
        if beyond { Err(Objection::NotGranted) } else { Ok(()) }
    }

    fn complete(&mut self, key: ModuleRpcKey) {
        self.scheduled.remove(&key);
        let Some(rpc) = self.rpcs.get_mut(&key) else { return };
        let Some(payload) = rpc.inc.take().map(|message| message.into_content().into()) else {
            return;
        };
        if key.role == Role::Server {
            rpc.state = State::InService;
            self.events.push_back(ModuleEvent::Request { rpc: key, payload });
            return;
        }
        let ack = Ack { client_id: key.id, server_port: rpc.peer_port };
        let list = self.peers.entry(key.peer).or_default().add(ack);
        if let Some(list) = list {
            self.send_control(key, Body::Ack(list));
        }
        if let Some(rpc) = self.remove(key) {
            self.events.push_back(ModuleEvent::Response { cookie: rpc.cookie, payload });
        }
    }

    /// Handles GRANT (HM `homa_incoming.c` `homa_grant_pkt`).
    fn on_grant(&mut self, from: From, offset: u32, level: u8) -> Result<(), Objection> {
        let rpc = self.rpcs.get_mut(&from.key).ok_or(Objection::UnknownRpc)?;
        rpc.silent_ticks = 0;
        if !rpc.may_send() {
            return Err(Objection::TooLate);
        }
        let out = rpc.out.as_mut().ok_or(Objection::WrongEnd)?;
        out.grant(offset);
        out.level = level;
        self.update(from.key);
        Ok(())
    }

    /// Handles RESEND (HM `homa_incoming.c` `homa_resend_pkt`).
    fn on_resend(&mut self, from: From, resend: &Resend) -> Result<(), Objection> {
        let Some(rpc) = self.rpcs.get_mut(&from.key) else {
            self.send_to(from.peer, from.ports, from.id(), Body::RpcUnknown);
            return Err(Objection::UnknownRpc);
        };
        let may_send = rpc.may_send();
        let Some(out) = rpc.out.as_mut().filter(|_| may_send) else {
            self.send_control(from.key, Body::Busy);
            return Ok(());
        };
        let end = if resend.length == EVERYTHING { out.sent } else { resend.end() };
        out.grant(end);
        let unsent = resend.offset >= out.sent;
        out.resend(resend.offset..end, resend.priority);
        if unsent {
            self.send_control(from.key, Body::Busy);
        }
        self.queue_resend(from.key);
        self.update(from.key);
        Ok(())
    }

    /// Handles RPC_UNKNOWN (HM `homa_incoming.c` `homa_rpc_unknown_pkt`).
    fn on_unknown(&mut self, from: From) -> Result<(), Objection> {
        let rpc = self.rpcs.get_mut(&from.key).ok_or(Objection::UnknownRpc)?;
        if from.key.role == Role::Server {
            self.remove(from.key);
            return Ok(());
        }
        let may_send = rpc.may_send();
        let Some(out) = rpc.out.as_mut().filter(|_| may_send) else {
            return Err(Objection::TooLate);
        };
        let level = self.peers.entry(from.peer).or_default().level(out.length());
        let sent = out.sent;
        out.resend(0..sent, level);
        self.queue_resend(from.key);
        Ok(())
    }

    fn on_busy(&mut self, from: From) -> Result<(), Objection> {
        let rpc = self.rpcs.get_mut(&from.key).ok_or(Objection::UnknownRpc)?;
        rpc.silent_ticks = 0;
        Ok(())
    }

    /// Handles NEED_ACK (HM `homa_incoming.c` `homa_need_ack_pkt`).
    fn on_need_ack(&mut self, from: From) -> Result<(), Objection> {
        if from.key.role == Role::Server {
            return Err(Objection::WrongEnd);
        }
        if self.rpcs.contains_key(&from.key) {
            self.request_missing(from.key);
        } else {
            let list = self.peers.entry(from.peer).or_default().take_list();
            self.send_to(from.peer, from.ports, from.id(), Body::Ack(list));
        }
        Ok(())
    }

    /// Handles ACK (HM `homa_incoming.c` `homa_ack_pkt`).
    fn on_ack(&mut self, from: From, list: &AckList) -> Result<(), Objection> {
        if from.key.role == Role::Client {
            return Err(Objection::WrongEnd);
        }
        self.remove(from.key);
        for ack in list.iter() {
            self.acknowledge(from.peer, ack)?;
        }
        Ok(())
    }

    /// Ends an acknowledged RPC (HM `homa_rpc.c` `homa_rpc_acked`).
    fn acknowledge(&mut self, peer: IpAddr, ack: Ack) -> Result<(), Objection> {
        if !ack.client_id.is_multiple_of(2) || ack.server_port != self.port {
            return Err(Objection::NotMine);
        }
        self.remove(ModuleRpcKey { peer, id: ack.client_id, role: Role::Server });
        Ok(())
    }
}
