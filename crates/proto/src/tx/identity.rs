//! The fields of packet headers that describe this endpoint.

use crate::peer::Peers;
use crate::rpc::{Rpc, Side};
use apus_wire::{Body, Dialect, Features, Flags, Header, KernelFields, Profile, UdpFields};

/// What this endpoint says about itself in every packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) profile: Profile,
    /// The endpoint's Homa port.
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
                self.client_fields(client.binding.session(), low_water)
            }
            Side::Server(server) => self.server_fields(Some(server.session)),
        };
        let dialect = self.dialect(fields);
        Header::new(body.kind(), self.port, rpc.peer_port, rpc.sender_id(), dialect)
    }

    /// The fields of a client's packet.
    pub(crate) const fn client_fields(&self, session: Option<u32>, low_water: u32) -> UdpFields {
        fields(session, self.incarnation, low_water)
    }

    /// The fields of a server's packet to a client with this session, if it has one.
    pub(crate) const fn server_fields(&self, session: Option<u32>) -> UdpFields {
        fields(session, 0, UdpFields::LOW_WATER_UNKNOWN)
    }

    /// The profile's own part of a header.
    pub(crate) const fn dialect(&self, fields: UdpFields) -> Dialect {
        match self.profile {
            Profile::Kernel => Dialect::Kernel(KernelFields::OURS),
            Profile::Udp => Dialect::Udp(fields),
        }
    }
}

/// The fields of a packet in `session`, or from an endpoint with this incarnation.
const fn fields(session: Option<u32>, incarnation: u32, low_water: u32) -> UdpFields {
    let (flags, incarnation) = match session {
        Some(session) => (Flags::SESSION, session),
        None => (Flags::NONE, incarnation),
    };
    UdpFields { flags, incarnation, low_water, features: Features::OURS }
}
