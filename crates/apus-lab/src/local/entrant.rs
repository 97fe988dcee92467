//! Who takes part?

use serde::{Deserialize, Serialize};

use crate::apus::{Apus, BarePair, Calls, Path};
use crate::baseline::{Boundaries, Sends, Tcp, Unix};
use crate::contender::{Contender, Replies};

/// A way for messages between two processes of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Entrant {
    /// Endpoints through shared memory.
    Local,
    /// What is below them.
    Pair,
    /// A unix socket that carries bytes.
    Unix,
    /// A unix socket that keeps messages apart.
    Packets,
    /// TCP on loopback.
    Tcp,
    /// Endpoints over UDP on loopback.
    Udp,
}

impl Entrant {
    /// All of them, in the order of the rows.
    pub(super) const ALL: [Self; 6] =
        [Self::Local, Self::Pair, Self::Unix, Self::Packets, Self::Tcp, Self::Udp];

    /// As results show it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Local => "apus-local",
            Self::Pair => "apus-local-pair",
            Self::Unix => "unix",
            Self::Packets => "unix-seqpacket",
            Self::Tcp => "tcp",
            Self::Udp => "apus-udp",
        }
    }

    /// How one client and one server exchange messages.
    pub(super) fn contender(self, calls: Calls) -> Box<dyn Contender> {
        let replies = match calls {
            Calls::OneByOne => Replies::Echo,
            Calls::Many(replies) => replies,
        };
        match self {
            Self::Local => Box::new(Apus { calls, path: Path::Local }),
            Self::Udp => Box::new(Apus { calls, path: Path::Udp }),
            Self::Pair => Box::new(BarePair { calls }),
            Self::Unix => Box::new(Unix { boundaries: Boundaries::Lost, replies }),
            Self::Packets => Box::new(Unix { boundaries: Boundaries::Kept, replies }),
            Self::Tcp => Box::new(Tcp { sends: Sends::One, replies }),
        }
    }

    /// Whether a server of this kind takes many clients. A bare pair has one by its nature; and a server with many
    /// sockets that keep messages apart differs in nothing from one with streams but that it is slower.
    pub(super) const fn takes_clients(self) -> bool {
        !matches!(self, Self::Pair | Self::Packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_names_of_their_contenders() {
        for entrant in Entrant::ALL {
            let name = entrant.contender(Calls::OneByOne).name();
            // Elsewhere endpoints over UDP are simply apus.
            let expected = if entrant == Entrant::Udp { "apus" } else { entrant.name() };
            assert_eq!(name, expected);
        }
    }
}
