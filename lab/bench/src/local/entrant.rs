//! The contenders of the local experiment.

use serde::{Deserialize, Serialize};

use crate::contenders::apus::BarePair;
use crate::contenders::baseline::{CacheLines, SendMode, Tcp, Unix, UnixKind};
use crate::contenders::contender::Contender;
use apus_measure::exchange::{Calls, Exchange, Path};
use apus_measure::plan::Replies;

/// The row of the faster kind of unix socket, figure by figure, as careful users would choose.
pub(super) const UNIX: &str = "unix";

/// The kinds of unix sockets.
pub(super) const KINDS: [Entrant; 2] = [Entrant::Stream, Entrant::Packets];

/// A path for messages between two processes of one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Entrant {
    /// Endpoints through shared memory.
    Local,
    /// The pair of rings below them.
    Pair,
    /// A bare exchange of cache lines; many messages at a time through the bare pair.
    Bare,
    /// A unix socket that carries bytes.
    Stream,
    /// A unix socket that keeps messages apart.
    Packets,
    /// TCP on loopback.
    Tcp,
    /// Endpoints over UDP on loopback.
    Udp,
}

impl Entrant {
    /// All of them, in the order of the rows.
    pub(super) const ALL: [Self; 7] =
        [Self::Local, Self::Pair, Self::Bare, Self::Stream, Self::Packets, Self::Tcp, Self::Udp];

    /// Returns the names that `--only` accepts.
    pub(super) fn names() -> Vec<&'static str> {
        let mut names = Self::ALL.map(Self::name).to_vec();
        let stream = Self::ALL.iter().position(|entrant| *entrant == Self::Stream);
        names.insert(stream.unwrap_or_default(), UNIX);
        names
    }

    /// Returns whether it takes part with `--only` set to `only`; empty selects all.
    pub(super) fn is_selected(self, only: &[String]) -> bool {
        let named = |name: &String| name == self.name() || (name == UNIX && KINDS.contains(&self));
        only.is_empty() || only.iter().any(named)
    }

    /// Name in results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Local => "apus-local",
            Self::Pair => "apus-local-pair",
            Self::Bare => "bare",
            Self::Stream => "unix-stream",
            Self::Packets => "unix-seqpacket",
            Self::Tcp => "tcp",
            Self::Udp => "apus-udp",
        }
    }

    /// Returns the contender for one client and one server.
    pub(super) fn contender(self, calls: Calls) -> Box<dyn Contender> {
        let replies = match calls {
            Calls::OneByOne => Replies::Echo,
            Calls::Many(replies) => replies,
        };
        match self {
            Self::Local => Box::new(Exchange { calls, path: Path::Local }),
            Self::Udp => Box::new(Exchange { calls, path: Path::Udp }),
            Self::Pair => Box::new(BarePair { calls }),
            Self::Bare => match calls {
                Calls::OneByOne => Box::new(CacheLines),
                Calls::Many(_) => Box::new(BarePair { calls }),
            },
            Self::Stream => Box::new(Unix { kind: UnixKind::Stream, replies }),
            Self::Packets => Box::new(Unix { kind: UnixKind::Seqpacket, replies }),
            Self::Tcp => Box::new(Tcp { sends: SendMode::One, replies }),
        }
    }

    /// Returns whether a server of this kind supports many clients. A bare pair has exactly one,
    /// and event loops over SOCK_SEQPACKET sockets are not used in practice.
    pub(super) const fn takes_clients(self) -> bool {
        !matches!(self, Self::Pair | Self::Bare | Self::Packets)
    }

    /// Returns whether several workers of this kind run at a time. A bare exchange only spins, and
    /// workers may share cores.
    pub(super) const fn takes_workers(self) -> bool {
        !matches!(self, Self::Bare)
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

    #[test]
    fn who_asks_for_unix_sockets_gets_both_kinds() {
        let only = ["unix".to_owned()];
        let selected: Vec<_> =
            Entrant::ALL.into_iter().filter(|it| it.is_selected(&only)).collect();
        assert_eq!(selected, KINDS);
        assert_eq!(Entrant::names()[2..5], ["bare", "unix", "unix-stream"]);
        assert!(Entrant::ALL.into_iter().all(|entrant| entrant.is_selected(&[])));
    }
}
