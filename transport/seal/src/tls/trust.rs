//! Trust: which of the verified peers are admitted.

use crate::failure::Failure;
use crate::identity::Identity;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// A check of an identity by the application: whether the peer at this address is admitted.
pub type Admission = Arc<dyn Fn(&Identity, SocketAddr) -> bool + Send + Sync>;

/// Which identities are admitted.
#[derive(Clone, Default)]
pub struct Trust {
    /// Patterns of names, one of which must match. Empty: every identity.
    pub allow: Vec<String>,
    /// A further check by the application.
    pub admission: Option<Admission>,
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let admission = self.admission.as_ref().map(|_| "..");
        let Self { allow, .. } = self;
        f.debug_struct("Trust").field("allow", allow).field("admission", &admission).finish()
    }
}

impl Trust {
    /// Checks the identity of the peer at `peer`.
    ///
    /// # Errors
    ///
    /// [`Failure::NotAllowed`].
    pub fn check(&self, identity: &Identity, peer: SocketAddr) -> Result<(), Failure> {
        let is_listed = self.allow.is_empty() || self.allow.iter().any(|it| identity.matches(it));
        let is_admitted = || self.admission.as_ref().is_none_or(|admits| admits(identity, peer));
        if is_listed && is_admitted() { Ok(()) } else { Err(Failure::NotAllowed) }
    }
}
