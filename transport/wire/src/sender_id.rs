//! RPC ids, which encode the end that sends a packet.

use core::fmt;

/// Which end of an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Sends the request, receives the response.
    Client,
    /// Receives the request, sends the response.
    Server,
}

impl Role {
    /// Returns the other end.
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// An RPC id as the sender of a packet sees it (bytes 20 to 27): the low bit is 0 if the sender is
/// the client of the RPC, 1 if it is the server.
///
/// Both ends identify an RPC by its even *client id*. Source: HM `homa_rpc.c`
/// `homa_rpc_find_server`; Rules for peers, item 4; requirement `WIRE-5`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SenderId(u64);

impl SenderId {
    /// Returns the id of RPC `client_id` as `sender` writes it.
    ///
    /// The low bit of `client_id` is ignored.
    #[must_use]
    pub const fn new(client_id: u64, sender: Role) -> Self {
        match sender {
            Role::Client => Self(client_id & !1),
            Role::Server => Self(client_id | 1),
        }
    }

    /// Returns the id with this value on the wire.
    #[must_use]
    pub const fn from_wire(value: u64) -> Self {
        Self(value)
    }

    /// Returns the value for the wire.
    #[must_use]
    pub const fn to_wire(self) -> u64 {
        self.0
    }

    /// Returns the even id that both ends use for the RPC.
    #[must_use]
    pub const fn client_id(self) -> u64 {
        self.0 & !1
    }

    /// Returns the end that sent the packet.
    #[must_use]
    pub const fn sender(self) -> Role {
        if self.0 & 1 == 0 { Role::Client } else { Role::Server }
    }
}

impl fmt::Debug for SenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.client_id(), self.sender())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requirement WIRE-5.
    #[test]
    fn low_bit_is_the_sender() {
        let id = SenderId::new(40, Role::Server);
        assert_eq!(id.to_wire(), 41);
        assert_eq!((id.client_id(), id.sender()), (40, Role::Server));
        assert_eq!(SenderId::new(41, Role::Client).to_wire(), 40);
        assert_eq!(Role::Client.peer(), Role::Server);
    }
}
