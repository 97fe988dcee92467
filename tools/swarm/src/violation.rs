//! What is wrong?

use std::fmt;

use super::seen::CallId;

/// Declares the kinds with name, exit status and meaning in one place.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal, $name:literal, $promise:literal;)*) => {
        /// Which promise was broken.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl Kind {
            /// All kinds, by exit status.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The exit status of `apus sim check` for it.
            #[must_use]
            pub const fn exit_status(self) -> u8 {
                match self { $(Self::$variant => $code,)* }
            }

            /// One word.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What was promised.
            #[must_use]
            pub const fn promise(self) -> &'static str {
                match self { $(Self::$variant => $promise,)* }
            }
        }
    };
}

kinds! {
    /// The core has panicked.
    Panic = 10, "panic", "the core never panics";
    /// Requirements AMO-2, AMO-5, RPC-3, RPC-4.
    Execution = 11, "execution", "a request is executed at most once, a response belongs to its request, a \
        call ends once, and a failed call tells the truth";
    /// Requirements RPC-15 to RPC-17, WIRE-10.
    Content = 12, "content", "every byte arrives as it was sent";
    /// Requirements GRANT-9, PRIO-1, PRIO-2, SEND-7, BAD-7.
    Permission = 13, "permission", "nothing is sent beyond what is unscheduled or granted";
    /// Requirements GRANT-5, GRANT-7.
    Incoming = 14, "incoming", "granted bytes under way stay within max_incoming";
    /// Requirements SEND-1, SEND-2, SEND-5.
    Order = 15, "order", "the shortest remaining message is sent first, but for the oldest one's share";
    /// Requirements TIME-3, TIME-4, RPC-3, CAP-1.
    Liveness = 16, "liveness", "every call ends in time, and after the faults with a response";
    /// Requirements RPC-6, TIME-13.
    Memory = 17, "memory", "nothing is left when everything has ended";
    /// Requirements BAD-5, TIME-6, TIME-9.
    Amplification = 18, "amplification", "nobody gets much more than was sent in his name, and control \
        packets are bounded";
    /// Invariant A1.
    Determinism = 19, "determinism", "the same seed gives the same run";
    /// Reference 8.2: a packet that the Linux module would not take.
    Interop = 20, "interop", "the Linux module takes every packet";
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub kind: Kind,
    /// The calls that it is about, if it is about any.
    pub calls: Vec<CallId>,
    /// What should have been.
    pub expected: String,
    /// What was.
    pub seen: String,
}

impl Violation {
    /// The same, about one more call.
    pub(crate) fn and(mut self, call: CallId) -> Self {
        self.calls.push(call);
        self
    }

    /// Nothing, if `holds`; otherwise the violation, for which nothing is written before it is needed.
    pub(crate) fn unless(
        holds: bool,
        kind: Kind,
        call: impl Into<Option<CallId>>,
        texts: impl FnOnce() -> (String, String),
    ) -> Result<(), Self> {
        if holds {
            return Ok(());
        }
        let (expected, seen) = texts();
        Err(Self { kind, calls: call.into().into_iter().collect(), expected, seen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_status_of_its_own_from_10_on() {
        let statuses: Vec<u8> = Kind::ALL.iter().map(|kind| kind.exit_status()).collect();
        assert_eq!(statuses, (10..10 + statuses.len() as u8).collect::<Vec<_>>());
    }
}
