//! Endpoints with a secret.

use apus::security::{Security, SecurityMode, SecuritySettings};
use apus::{Endpoint, EndpointBuilder};
use std::os::unix::fs::PermissionsExt;

/// Returns a builder of endpoints whose packets are sealed with a secret of this process.
pub(crate) fn builder() -> EndpointBuilder {
    let folder = tempfile::tempdir().unwrap().keep();
    let secret = folder.join("secret");
    std::fs::write(&secret, [7; 32]).unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    let settings = SecuritySettings {
        mode: SecurityMode::Secret,
        secret: Some(secret),
        ..SecuritySettings::default()
    };
    Endpoint::builder().local(false).security(Security::new(settings))
}
