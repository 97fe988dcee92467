//! The fields of packet headers that describe this endpoint.

use crate::peer::Calls;
use crate::rpc::{Rpc, Side};
use crate::time::Instant;
use apus_wire::{Dialect, Features, Flags, Header, KernelFields, Kind, Profile, UdpFields};

/// The endpoint's identity, stated in every packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) profile: Profile,
    /// The endpoint's Homa port.
    pub(crate) port: u16,
    /// Random number of this endpoint's life (udp profile).
    pub(crate) incarnation: u32,
    /// When this life began, if that is known (AMO-11).
    pub(crate) born: Option<Instant>,
}

impl Identity {
    /// The header of a packet of `kind` about `rpc`; `calls` are those to its peer.
    #[inline(always)]
    pub(crate) fn header(&self, calls: &Calls, rpc: &Rpc, kind: Kind) -> Header {
        let fields = match &rpc.side {
            Side::Client(client) => {
                let session = client.binding.session();
                let claim = session.and_then(|session| calls.claim(session));
                match claim.filter(|_| kind == Kind::Data) {
                    Some(claim) => confirming(self.client_fields(session, claim)),
                    None => self.client_fields(session, calls.low_water(rpc.id)),
                }
            }
            Side::Server(server) => self.server_fields(Some(server.session)),
        };
        let dialect = self.dialect(fields);
        Header::new(kind, self.port, rpc.peer_port, rpc.sender_id(), dialect)
    }

    /// The fields of a client's packet.
    pub(crate) const fn client_fields(&self, session: Option<u64>, low_water: u32) -> UdpFields {
        fields(session, self.incarnation, low_water)
    }

    /// The fields of a server's packet to a client with this session, if it has one.
    pub(crate) const fn server_fields(&self, session: Option<u64>) -> UdpFields {
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
const fn fields(session: Option<u64>, incarnation: u32, low_water: u32) -> UdpFields {
    let (flags, incarnation, features) = match session {
        // WIRE-33: the session of an older server. It looks for features where the upper part of a
        // longer one is.
        Some(session) if session >> 32 == 0 => {
            (Flags::SESSION, session, Features::OURS.without(Features::LONG_SESSIONS))
        }
        Some(session) => (Flags::SESSION, session, Features::OURS),
        None => (Flags::NONE, incarnation as u64, Features::OURS),
    };
    UdpFields { flags, incarnation, low_water, features }
}

/// The fields of DATA that answers a session challenge: the low-water mark gives way to the claim.
const fn confirming(fields: UdpFields) -> UdpFields {
    UdpFields { flags: fields.flags.with(Flags::CONFIRM), ..fields }
}
