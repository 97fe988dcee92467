//! Variants: how a command is written and read.

use std::fmt;

/// One way to exchange commands.
#[derive(Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name in results.
    pub name: &'static str,
    /// The transport.
    pub carrier: Carrier,
    /// How the client writes a command. The server always writes its reply as a whole.
    pub writing: Writing,
    /// How both sides read.
    pub reading: Reading,
}

/// The transport of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// One TCP connection with the system's defaults.
    Tcp,
    /// Two endpoints of apus, over UDP.
    Apus,
}

/// How a command is written: 4 bytes of length, and 60 more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// 64 bytes in one call.
    Whole,
    /// Two calls.
    Split,
    /// Two calls, on a socket with `TCP_NODELAY`.
    NoDelay,
    /// Two calls, the first with `MSG_MORE`.
    More,
    /// Two calls, with `TCP_CORK` set before and cleared after them.
    Cork,
    /// Two calls, and a server that requests quick acknowledgements (`TCP_QUICKACK`) after each
    /// read.
    QuickAck,
    /// Two slices in one call: `sendmsg`, or the payload of a call of apus.
    Gather,
}

/// How a message is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// All 64 bytes, in one call if they have arrived.
    Whole,
    /// 4 bytes and then 60.
    Pieces,
}

impl Variant {
    /// All variants, in the order of the report.
    pub const ALL: [Self; 13] = {
        use Reading::{Pieces, Whole as Read};
        use Writing::{Cork, Gather, More, NoDelay, QuickAck, Split, Whole};
        [
            Self::tcp("tcp whole", Whole, Read),
            Self::tcp("tcp split", Split, Read),
            Self::tcp("tcp receive split", Whole, Pieces),
            Self::tcp("tcp both split", Split, Pieces),
            Self::tcp("tcp split+nodelay", NoDelay, Read),
            Self::tcp("tcp split+more", More, Read),
            Self::tcp("tcp split+cork", Cork, Read),
            Self::tcp("tcp split+quickack", QuickAck, Read),
            Self::tcp("tcp gather", Gather, Read),
            Self::apus("apus whole", Whole, Read),
            Self::apus("apus split", Gather, Read),
            Self::apus("apus receive split", Whole, Pieces),
            Self::apus("apus both split", Gather, Pieces),
        ]
    };

    const fn tcp(name: &'static str, writing: Writing, reading: Reading) -> Self {
        Self { name, carrier: Carrier::Tcp, writing, reading }
    }

    const fn apus(name: &'static str, writing: Writing, reading: Reading) -> Self {
        Self { name, carrier: Carrier::Apus, writing, reading }
    }

    /// Returns the variant of that name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        const ALL: &[Variant] = &Variant::ALL;
        ALL.iter().find(|variant| variant.name == name)
    }

    /// Returns the name of the variant to compare with: the same carrier without splits.
    pub(super) const fn base(&self) -> &'static str {
        match self.carrier {
            Carrier::Tcp => "tcp whole",
            Carrier::Apus => "apus whole",
        }
    }

    /// Returns a description.
    pub(super) fn says(&self) -> String {
        let written = match (self.carrier, self.writing) {
            (Carrier::Tcp, Writing::Whole) => "one send of 64 bytes",
            (Carrier::Apus, Writing::Whole) => "a call with 64 bytes",
            (_, Writing::Split) => "a send of 4 bytes and one of 60",
            (_, Writing::NoDelay) => "two sends on a socket with TCP_NODELAY",
            (_, Writing::More) => "two sends, the first with MSG_MORE",
            (_, Writing::Cork) => "two sends between TCP_CORK set and taken away",
            (_, Writing::QuickAck) => {
                "two sends to a server that sets TCP_QUICKACK after each read"
            }
            (Carrier::Tcp, Writing::Gather) => "one sendmsg of two slices",
            (Carrier::Apus, Writing::Gather) => "a call whose payload has two slices",
        };
        match self.reading {
            Reading::Whole => written.to_owned(),
            Reading::Pieces => format!("{written}; both sides read 4 bytes and then 60"),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_unique_name_and_a_variant_to_compare_with() {
        for (index, variant) in Variant::ALL.iter().enumerate() {
            let same = Variant::ALL.iter().position(|each| each.name == variant.name);
            assert_eq!(same, Some(index));
            let base = Variant::named(variant.base()).unwrap();
            assert_eq!(base.carrier, variant.carrier);
            assert_eq!((base.writing, base.reading), (Writing::Whole, Reading::Whole));
        }
        assert_eq!(Variant::named("tcp slowly"), None);
    }
}
