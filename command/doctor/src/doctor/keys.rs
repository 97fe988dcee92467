//! Key checks: permissions, pairs and dates of the keys for sealed packets.

use std::time::{SystemTime, UNIX_EPOCH};

use ::apus::security::{
    CredentialsError, SecurityMode, SecuritySettings, certificate_validity, pem_certificates,
};

use super::finding::Finding;

/// Days before the expiry of a certificate when its finding becomes a warning. Chosen by us:
/// automatic rotation happens earlier, and manual rotation needs this time.
const SOON: u64 = 14;

const DAY: u64 = 86_400;

/// Checks the files of `[security]`.
pub(super) fn check(security: &SecuritySettings) -> Vec<Finding> {
    let mut findings = vec![files(security)];
    if security.mode == SecurityMode::Tls {
        findings.extend(dates(security));
    }
    findings
}

/// Whether an endpoint with these settings can be opened.
fn files(security: &SecuritySettings) -> Finding {
    const CHECK: &str = "keys";
    let mode = security.mode;
    match security.credentials() {
        Ok(_) => {
            let fact = format!(
                "the files of mode `{mode}` are readable for their owner alone, and belong together"
            );
            Finding::ok(CHECK, fact)
        }
        Err(error) => {
            let fixes = match &error {
                CredentialsError::Exposed { path, .. } => {
                    vec![format!("chmod 600 {}", path.display())]
                }
                _ => vec!["apus keys show  # what there is".to_owned()],
            };
            Finding::error(CHECK, error.to_string())
                .because("No endpoint is opened with these settings.")
                .fix(fixes)
        }
    }
}

/// Start and end of this host's certificate.
fn dates(security: &SecuritySettings) -> Option<Finding> {
    const CHECK: &str = "certificate-dates";
    let chain = pem_certificates(security.certificate.as_deref()?).ok()?;
    let roots = pem_certificates(security.ca.as_deref()?).ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    let renew =
        || vec!["apus keys issue NAME --out FOLDER  # on the host that has the CA".to_owned()];
    let why = "Peers refuse this host, and its calls fail.";
    Some(match certificate_validity(&chain, &roots) {
        Err(cause) => {
            let fact =
                format!("the certificate of this host is not good for its CA: {}", cause.name());
            Finding::error(CHECK, fact).because(why).fix(renew())
        }
        Ok((begins, _)) if now < begins => {
            let hours = (begins - now).div_ceil(3600);
            let fact = format!("the certificate of this host is valid only in {hours} hours");
            Finding::error(CHECK, fact)
                .because(why)
                .fix(vec!["date  # is the clock right?".to_owned()])
        }
        Ok((_, ends)) if now > ends => {
            let days = (now - ends) / DAY;
            let fact = format!("the certificate of this host has expired {days} days ago");
            Finding::error(CHECK, fact).because(why).fix(renew())
        }
        Ok((_, ends)) if ends - now < SOON * DAY => {
            let fact =
                format!("the certificate of this host expires in {} days", (ends - now) / DAY);
            Finding::warning(CHECK, fact)
                .because("Peers refuse this host from then on.")
                .fix(renew())
        }
        Ok((_, ends)) => {
            let fact = format!(
                "the certificate of this host is valid for {} more days",
                (ends - now) / DAY
            );
            Finding::ok(CHECK, fact)
        }
    })
}
