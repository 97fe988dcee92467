//! The identity of a peer, as proved by a handshake.

use std::fmt;

/// How a peer proved its identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdentityKind {
    /// A certificate of the configured CA.
    Certificate,
    /// A raw public key that is in the list of known keys.
    Key,
    /// Knowledge of the cluster's secret.
    Secret,
    /// A process of this host whose user the system reported (`SO_PEERCRED`).
    Local,
}

/// The role in which a peer was verified. A certificate may be for one of them only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeerRole {
    /// The peer started the handshake.
    Client,
    /// This end started the handshake, with a server at the peer's address.
    Server,
}

/// The verified identity of a peer.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    kind: IdentityKind,
    names: Vec<String>,
    fingerprint: [u8; 32],
    chain: Vec<Vec<u8>>,
    role: PeerRole,
}

impl Identity {
    /// Creates an identity from its kind, its names, the SHA-256 of its public key or certificate,
    /// and its certificate chain in DER, leaf first. It was verified as a client's.
    #[must_use]
    pub const fn new(
        kind: IdentityKind,
        names: Vec<String>,
        fingerprint: [u8; 32],
        chain: Vec<Vec<u8>>,
    ) -> Self {
        Self { kind, names, fingerprint, chain, role: PeerRole::Client }
    }

    /// Sets the role in which it was verified.
    #[must_use]
    pub fn verified_as(self, role: PeerRole) -> Self {
        Self { role, ..self }
    }

    /// Returns the role in which it was verified.
    #[must_use]
    pub const fn role(&self) -> PeerRole {
        self.role
    }

    /// Returns how the peer proved its identity.
    #[must_use]
    pub const fn kind(&self) -> IdentityKind {
        self.kind
    }

    /// Returns the names of the peer: the URIs and then the DNS names of its certificate, or the
    /// name of its key in the file of known keys.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the SPIFFE id, if the certificate has one (SPIFFE X509-SVID, section 2).
    #[must_use]
    pub fn spiffe_id(&self) -> Option<&str> {
        self.names.iter().map(String::as_str).find(|name| name.starts_with("spiffe://"))
    }

    /// Returns the SHA-256 of the peer's certificate, or of its raw public key.
    #[must_use]
    pub const fn fingerprint(&self) -> &[u8; 32] {
        &self.fingerprint
    }

    /// Returns the peer's certificate chain in DER, leaf first; empty if it presented a raw key.
    #[must_use]
    pub fn chain(&self) -> &[Vec<u8>] {
        &self.chain
    }

    /// Returns whether one of the names matches `pattern`. A trailing `*` matches any suffix.
    #[must_use]
    pub fn matches(&self, pattern: &str) -> bool {
        self.names.iter().any(|name| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = self.names.first() {
            return f.write_str(name);
        }
        f.write_str("sha256:")?;
        self.fingerprint.iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:?}, {self})", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_ends_where_its_star_is() {
        let names = vec!["spiffe://prod/billing/a".to_owned(), "a.example".to_owned()];
        let identity = Identity::new(IdentityKind::Certificate, names, [7; 32], Vec::new());
        assert!(identity.matches("spiffe://prod/billing/*"));
        assert!(identity.matches("a.example"));
        assert!(!identity.matches("spiffe://prod/bill"));
        assert!(!identity.matches("spiffe://prod/shop/*"));
        assert_eq!(identity.spiffe_id(), Some("spiffe://prod/billing/a"));
        assert_eq!(identity.to_string(), "spiffe://prod/billing/a");
    }
}
