//! Causes of failed handshakes, and the end that found them.

use std::fmt;

/// The cause of a failed handshake. The end that finds it sends its code to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Failure {
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet: one of the two clocks is wrong, or it was issued for a
    /// later time.
    NotYetValid,
    /// The certificate was not issued by the configured CA.
    UnknownCa,
    /// The certificate does not name the called address.
    NameMismatch,
    /// The identity is genuine but not on the allow list.
    NotAllowed,
    /// The key is not in the list of known keys.
    UnknownKey,
    /// The certificate was revoked.
    Revoked,
    /// The certificate is damaged or not valid for this use.
    BadCertificate,
    /// The end presented neither a certificate nor a key.
    NoCertificate,
    /// The two ends have no version, cipher or kind of key in common.
    Incompatible,
    /// Handshake messages were damaged or out of place.
    Protocol,
    /// The other end did not answer.
    Timeout,
    /// The other end has too many handshakes or peers.
    Overloaded,
    /// The cryptographic library failed.
    Internal,
}

impl Failure {
    /// All causes, in the order of their codes, starting with 1.
    pub const ALL: [Self; 14] = [
        Self::Expired,
        Self::NotYetValid,
        Self::UnknownCa,
        Self::NameMismatch,
        Self::NotAllowed,
        Self::UnknownKey,
        Self::Revoked,
        Self::BadCertificate,
        Self::NoCertificate,
        Self::Incompatible,
        Self::Protocol,
        Self::Timeout,
        Self::Overloaded,
        Self::Internal,
    ];

    /// Returns the code of the cause in FAILED packets (SEAL-12).
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// Returns the cause with this code; an unknown one reads as [`Failure::Protocol`].
    #[must_use]
    pub fn from_code(code: u8) -> Self {
        let at = usize::from(code).wrapping_sub(1);
        Self::ALL.get(at).copied().unwrap_or(Self::Protocol)
    }

    /// Returns the name of the cause, as in counters: lower case, with underscores.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::UnknownCa => "unknown_ca",
            Self::NameMismatch => "name_mismatch",
            Self::NotAllowed => "not_allowed",
            Self::UnknownKey => "unknown_key",
            Self::Revoked => "revoked",
            Self::BadCertificate => "bad_certificate",
            Self::NoCertificate => "no_certificate",
            Self::Incompatible => "incompatible",
            Self::Protocol => "protocol",
            Self::Timeout => "timeout",
            Self::Overloaded => "overloaded",
            Self::Internal => "internal",
        }
    }

    /// Returns the fault of the accused end, and the remedy.
    const fn advice(self) -> &'static str {
        match self {
            Self::Expired => {
                "its certificate has expired; issue a new one (`apus keys issue`), and check both clocks"
            }
            Self::NotYetValid => "its certificate is not valid yet; check the clocks of both hosts",
            Self::UnknownCa => {
                "its certificate was not issued by the configured CA; compare the `ca` files of both hosts"
            }
            Self::NameMismatch => {
                "its certificate is not for the address that was called; issue one with that address"
            }
            Self::NotAllowed => "its identity is not in the `allow` list",
            Self::UnknownKey => "its key is not in the file of known keys",
            Self::Revoked => "its certificate was revoked",
            Self::BadCertificate => "its certificate is damaged or not made for this use",
            Self::NoCertificate => "it has shown no certificate and no key",
            Self::Incompatible => {
                "the two have no kind of identity or cipher in common; compare `mode` of both hosts"
            }
            Self::Protocol => "handshake messages were damaged or out of place",
            Self::Timeout => "it does not answer; is it running, and sealed?",
            Self::Overloaded => "it has too many handshakes or peers",
            Self::Internal => "the cryptographic library has failed",
        }
    }
}

/// The end that found the cause; the other end is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FoundBy {
    /// This end refuses the peer.
    Us,
    /// The peer refuses this end.
    Peer,
}

/// A failed handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HandshakeError {
    /// The cause.
    pub cause: Failure,
    /// The end that found it.
    pub found_by: FoundBy,
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let advice = self.cause.advice();
        match self.found_by {
            FoundBy::Us => write!(f, "the peer is refused: {advice}"),
            FoundBy::Peer => write!(f, "the peer refuses this host: {advice}"),
        }
    }
}

impl std::error::Error for HandshakeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_a_code_of_its_own() {
        for cause in Failure::ALL {
            assert_eq!(Failure::from_code(cause.code()), cause);
        }
        assert_eq!(Failure::from_code(0), Failure::Protocol);
        assert_eq!(Failure::from_code(255), Failure::Protocol);
    }
}
