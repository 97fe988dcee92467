//! What carries packets?

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use apus::{BindError, Builder, OpenRawError, RawConfig};
use clap::ValueEnum;

use crate::failure::Failure;

/// What packets lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Driver {
    /// UDP datagrams: no privileges
    #[default]
    Udp,
    /// IP packets of protocol 146, as the Linux kernel's Homa module sends them: takes the capability CAP_NET_RAW;
    /// messages of at most 1000000 bytes, nothing through shared memory
    Raw,
}

/// Longest message over raw IP. Source: the kernel module's limit, docs/spec/parameters.md.
const LONGEST_RAW: usize = 1_000_000;

impl Driver {
    /// Settings of an endpoint that is to listen at `bind`, or to call from there.
    pub(crate) fn build(self, settings: Builder, bind: SocketAddr) -> Builder {
        match self {
            Self::Udp => settings,
            Self::Raw => settings.raw(RawConfig::bound_to(bind)),
        }
    }

    /// Where a client is that calls one of `services`, and those of them that it can call: over raw IP an endpoint
    /// speaks one of the two protocols, IPv4 if that will do.
    pub(crate) fn client_of(self, mut services: Vec<SocketAddr>) -> (SocketAddr, Vec<SocketAddr>) {
        let any_v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        if self == Self::Udp || services.iter().all(SocketAddr::is_ipv6) {
            return (any_v6, services);
        }
        services.retain(SocketAddr::is_ipv4);
        (SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), services)
    }

    /// Whether messages may be as long as this.
    ///
    /// # Errors
    ///
    /// They may not; says what would be right.
    pub(crate) fn check_size(self, argument: &str, size: usize) -> Result<(), Failure> {
        if self == Self::Udp || size <= LONGEST_RAW {
            return Ok(());
        }
        Err(Failure::Argument {
            argument: argument.to_owned(),
            problem: format!(
                "{size} bytes, and over raw IP a message has at most {LONGEST_RAW}, which is the kernel module's \
                 limit; try {LONGEST_RAW}"
            ),
        })
    }
}

/// Why an endpoint cannot be opened; `advice` for the case that the address is the reason.
pub(crate) fn not_opened(error: &BindError, advice: &str) -> Failure {
    match error {
        // It says itself what to do.
        BindError::OpenRaw(OpenRawError::NotPermitted { .. }) => Failure::Work(error.to_string()),
        _ => Failure::Work(format!("{error}\n{advice}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_speaks_what_its_service_speaks() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (v4, v6) = (address("10.0.0.1:4000"), address("[fd00::1]:4000"));
        let any = |text: &str| address(text);
        assert_eq!(Driver::Raw.client_of(vec![v6, v4]), (any("0.0.0.0:0"), vec![v4]));
        assert_eq!(Driver::Raw.client_of(vec![v6]), (any("[::]:0"), vec![v6]));
        assert_eq!(Driver::Udp.client_of(vec![v6, v4]), (any("[::]:0"), vec![v6, v4]));
    }

    #[test]
    fn sizes_are_those_of_the_profile() {
        assert!(Driver::Raw.check_size("--size", LONGEST_RAW).is_ok());
        assert!(Driver::Raw.check_size("--size", LONGEST_RAW + 1).is_err());
        assert!(Driver::Udp.check_size("--size", LONGEST_RAW + 1).is_ok());
        let kernel = apus::Config::builder().profile(apus::Profile::Kernel).build().unwrap();
        assert_eq!(kernel.max_message(), LONGEST_RAW as u64);
    }
}
