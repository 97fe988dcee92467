//! Violations of the protocol's promises.

use std::fmt;

use super::observation::CallId;

/// Declares the kinds with name, exit status and meaning in one place.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident = $code:literal, $name:literal, $promise:literal;)*) => {
        /// The broken promise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ViolationKind {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl ViolationKind {
            /// All kinds, by exit status.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the exit status of `apus-lab sim check`.
            #[must_use]
            pub const fn exit_status(self) -> u8 {
                match self { $(Self::$variant => $code,)* }
            }

            /// Returns the name, a single word.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Returns the promise.
            #[must_use]
            pub const fn promise(self) -> &'static str {
                match self { $(Self::$variant => $promise,)* }
            }
        }
    };
}

kinds! {
    /// A panic of the core.
    Panic = 10, "panic", "the core never panics";
    /// Requirements AMO-2, AMO-5, RPC-3, RPC-4.
    Execution = 11, "execution", "a request is executed at most once, a response belongs to its request, a \
        call ends once, and a failed call reports whether it was executed";
    /// Requirements RPC-15 to RPC-17, WIRE-10.
    Content = 12, "content", "every byte arrives unchanged";
    /// Requirements GRANT-9, PRIO-1, PRIO-2, PRIO-14, SEND-7, BAD-7.
    Permission = 13, "permission", "nothing is sent beyond what is unscheduled or granted, nor by cutoffs that \
        were not announced";
    /// Requirements GRANT-5, GRANT-7.
    Incoming = 14, "incoming", "granted bytes in flight stay within max_incoming";
    /// Requirements SEND-1, SEND-2, SEND-5.
    Order = 15, "order", "the shortest remaining message is sent first, except for the oldest one's share";
    /// Requirements TIME-3, TIME-4, RPC-3, CAP-1.
    Liveness = 16, "liveness", "every call ends in time, and after the faults it succeeds";
    /// Requirements RPC-6, TIME-13.
    Memory = 17, "memory", "no state is left when everything has ended";
    /// Requirements BAD-5, TIME-6, TIME-9.
    Amplification = 18, "amplification", "no address receives much more than was sent from it, and control \
        packets are bounded";
    /// Invariant CORE-1.
    Determinism = 19, "determinism", "the same seed gives the same run";
    /// docs/reference/homa-module.md, *Rules for peers*: a packet that the Linux module would not
    /// accept.
    Interop = 20, "interop", "the Linux module accepts every packet";
    /// Lab ADR 10.
    Recovery = 21, "recovery", "an overload ends with its cause, and what was not lost is not sent again";
    /// Section *How it is checked* of docs/security.md; docs/attacks.md.
    Undisturbed = 22, "undisturbed", "a hostile host ends no honest call, and delays none for long";
    /// docs/fs/semantics.md.
    Files = 23, "files", "the file service keeps its promises to programs";
    /// Requirements SEAL-3, SEAL-5, SEAL-7, SEAL-15, SEAL-17.
    Sealing = 24, "sealing", "what is opened was sealed by its sender, and is opened once, no number is used twice with a key, and \
        no call ends because hosts with keys agree upon others";
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A violation of a promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The promise.
    pub kind: ViolationKind,
    /// The calls concerned, if any.
    pub calls: Vec<CallId>,
    /// Expectation.
    pub expected: String,
    /// Observation.
    pub observed: String,
}

impl Violation {
    /// Returns the violation with one more call.
    pub(crate) fn and(mut self, call: CallId) -> Self {
        self.calls.push(call);
        self
    }

    /// Returns `Ok` if `holds`, otherwise the violation. Its texts are formatted only in the latter
    /// case.
    pub(crate) fn unless(
        holds: bool,
        kind: ViolationKind,
        call: impl Into<Option<CallId>>,
        texts: impl FnOnce() -> (String, String),
    ) -> Result<(), Self> {
        if holds {
            return Ok(());
        }
        let (expected, observed) = texts();
        Err(Self { kind, calls: call.into().into_iter().collect(), expected, observed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_status_from_10_on() {
        let statuses: Vec<u8> = ViolationKind::ALL.iter().map(|kind| kind.exit_status()).collect();
        assert_eq!(statuses, (10..10 + statuses.len() as u8).collect::<Vec<_>>());
    }
}
