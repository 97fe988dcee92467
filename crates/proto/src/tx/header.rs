//! What stands in the headers of our packets?

use crate::drop_reason::DropReason;
use crate::peer::{Address, PeerId, Peers};
use crate::rpc::{Rpc, RpcKey, Side};
use crate::transport::Transport;
use apus_wire::{
    Body, Dialect, Flags, Header, KernelFields, Packet, Profile, Refusal, SenderId, UdpFields,
};

/// What this endpoint says about itself in every packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) profile: Profile,
    /// Our Homa port.
    pub(crate) port: u16,
    /// Random number of this endpoint's life (udp profile).
    pub(crate) incarnation: u32,
}

impl Identity {
    /// The header of a packet of `kind` about `rpc`.
    pub(crate) fn header(&self, peers: &Peers, rpc: &Rpc, body: &Body<'_>) -> Header {
        let fields = match &rpc.side {
            Side::Client(client) => {
                let low_water = peers[rpc.peer].calls.low_water(rpc.id);
                self.client_fields(client.session, low_water)
            }
            Side::Server(server) => self.server_fields(Some(server.session)),
        };
        let dialect = self.dialect(fields);
        Header::new(body.kind(), self.port, rpc.peer_port, rpc.sender_id(), dialect)
    }

    /// The fields of a client's packet.
    pub(crate) fn client_fields(&self, session: Option<u32>, low_water: u32) -> UdpFields {
        match session {
            Some(session) => UdpFields { flags: Flags::SESSION, incarnation: session, low_water },
            None => UdpFields { flags: Flags::NONE, incarnation: self.incarnation, low_water },
        }
    }

    /// The fields of a server's packet to a client with this session, if it has one.
    pub(crate) const fn server_fields(&self, session: Option<u32>) -> UdpFields {
        let low_water = UdpFields::LOW_WATER_UNKNOWN;
        match session {
            Some(session) => UdpFields { flags: Flags::SESSION, incarnation: session, low_water },
            None => UdpFields { flags: Flags::NONE, incarnation: 0, low_water },
        }
    }

    /// The header's own part for our profile.
    pub(crate) const fn dialect(&self, fields: UdpFields) -> Dialect {
        match self.profile {
            Profile::Kernel => Dialect::Kernel(KernelFields::OURS),
            Profile::Udp => Dialect::Udp(fields),
        }
    }
}

/// Adds flags to a header of the udp profile; in the kernel profile nothing happens.
fn add_flags(header: &mut Header, flags: Flags) {
    if let Dialect::Udp(fields) = &mut header.dialect {
        fields.flags = fields.flags.with(flags);
    }
}

impl Transport {
    /// Sends a control packet about a live RPC.
    pub(crate) fn send_control(&mut self, rpc: RpcKey, body: Body<'_>) {
        self.send_flagged(rpc, body, Flags::NONE);
    }

    /// The same with flags of the udp profile.
    pub(crate) fn send_flagged(&mut self, rpc: RpcKey, body: Body<'_>, flags: Flags) {
        self.send_with_sequence(rpc, body, flags, 0);
    }

    /// The same with a value in `sequence`.
    pub(crate) fn send_with_sequence(
        &mut self,
        rpc: RpcKey,
        body: Body<'_>,
        flags: Flags,
        sequence: u32,
    ) {
        let rpc = &self.rpcs[rpc];
        let mut header = self.identity.header(&self.peers, rpc, &body);
        add_flags(&mut header, flags);
        header.sequence = sequence;
        let to = self.peers[rpc.peer].address;
        self.enqueue_control(to, &Packet { header, body });
    }

    /// Answers a packet about an RPC that does not live here. `session` is stated if it is ours to
    /// state; the receiver of `header` becomes the sender.
    pub(crate) fn answer(
        &mut self,
        to: Address,
        header: &Header,
        body: Body<'_>,
        flags: Flags,
        refusal: Option<Refusal>,
    ) {
        let id = SenderId::new(header.sender_id.client_id(), header.sender_id.sender().peer());
        let peer = self.peers.find(to);
        let fields = match id.sender() {
            apus_wire::Role::Client => {
                let session = peer.and_then(|peer| self.peers[peer].calls.session);
                self.identity.client_fields(session, UdpFields::LOW_WATER_UNKNOWN)
            }
            apus_wire::Role::Server => {
                self.identity.server_fields(peer.and_then(|peer| self.serving_session(peer)))
            }
        };
        let dialect = self.identity.dialect(fields);
        let mut answer = Header::new(body.kind(), self.identity.port, header.sport, id, dialect);
        answer.sequence = match (refusal, self.identity.profile) {
            (Some(refusal), Profile::Udp) => refusal as u32,
            _ => 0,
        };
        add_flags(&mut answer, flags);
        self.enqueue_control(to, &Packet { header: answer, body });
    }

    fn serving_session(&self, peer: PeerId) -> Option<u32> {
        self.peers[peer].serving.session()
    }

    pub(crate) fn enqueue_control(&mut self, to: Address, packet: &Packet<'_>) {
        self.note_departure(to, packet);
        let queued = self.outbox.control.push(super::ControlPacket::new(to, packet));
        if !queued {
            self.metrics.count_drop(DropReason::ControlQueueFull);
        }
    }
}
