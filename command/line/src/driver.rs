//! Drivers: the choice between UDP and raw IP, and its consequences for endpoints and messages.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use apus::{BindError, EndpointBuilder, RawConfig, RawOpenError};
use clap::ValueEnum;

use crate::failure::Failure;

/// The protocol that carries packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Driver {
    /// UDP datagrams: no privileges
    #[default]
    Udp,
    /// IP packets of protocol 146, as the Linux kernel's Homa module sends them: takes the
    /// capability CAP_NET_RAW; messages of at most 1000000 bytes, nothing through shared memory
    Raw,
}

/// Longest message over raw IP, in bytes. Source: the kernel module's limit,
/// docs/spec/parameters.md.
const MAX_RAW_MESSAGE: usize = 1_000_000;

impl Driver {
    /// Returns the settings of an endpoint bound to `bind`, for listening or for calls.
    pub fn apply(self, builder: EndpointBuilder, bind: SocketAddr) -> EndpointBuilder {
        match self {
            Self::Udp => builder,
            Self::Raw => builder.raw(RawConfig::bound_to(bind)),
        }
    }

    /// Returns a client's bind address for calls to one of `services`, and the services reachable
    /// from it. Over raw IP an endpoint speaks either IPv4 or IPv6; IPv4 is preferred.
    pub fn client_binding(self, mut services: Vec<SocketAddr>) -> (SocketAddr, Vec<SocketAddr>) {
        let any_v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        if self == Self::Udp || services.iter().all(SocketAddr::is_ipv6) {
            return (any_v6, services);
        }
        services.retain(SocketAddr::is_ipv4);
        (SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)), services)
    }

    /// Checks that the driver carries messages of `size` bytes; `argument` is the argument that
    /// sets the size.
    ///
    /// # Errors
    ///
    /// [`Failure::Argument`] with the limit.
    pub fn check_size(self, argument: &str, size: usize) -> Result<(), Failure> {
        let (least_or_most, limit) = match size {
            _ if self == Self::Udp => return Ok(()),
            0 => ("least", 1),
            1..=MAX_RAW_MESSAGE => return Ok(()),
            _ => ("most", MAX_RAW_MESSAGE),
        };
        Err(Failure::Argument {
            argument: argument.to_owned(),
            problem: format!(
                "{size} bytes, and over raw IP a message has at {least_or_most} {limit}, which is the kernel module's \
                 limit; try {limit}"
            ),
        })
    }
}

/// Returns the failure of opening an endpoint. `advice` is for a port that is in use.
pub fn bind_failure(error: &BindError, advice: &str) -> Failure {
    let is_in_use = match error {
        BindError::Open(error) => error.source.kind() == ErrorKind::AddrInUse,
        BindError::OpenRaw(error) => matches!(error, RawOpenError::PortInUse { .. }),
        _ => false,
    };
    Failure::Work(if is_in_use { format!("{error}\n{advice}") } else { error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_uses_the_ip_version_of_its_service() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (v4, v6) = (address("10.0.0.1:4000"), address("[fd00::1]:4000"));
        let any = |text: &str| address(text);
        assert_eq!(Driver::Raw.client_binding(vec![v6, v4]), (any("0.0.0.0:0"), vec![v4]));
        assert_eq!(Driver::Raw.client_binding(vec![v6]), (any("[::]:0"), vec![v6]));
        assert_eq!(Driver::Udp.client_binding(vec![v6, v4]), (any("[::]:0"), vec![v6, v4]));
    }

    #[test]
    fn sizes_are_limited_by_the_profile() {
        assert!(Driver::Raw.check_size("--size", MAX_RAW_MESSAGE).is_ok());
        for wrong in [0, MAX_RAW_MESSAGE + 1] {
            assert!(Driver::Raw.check_size("--size", wrong).is_err());
            assert!(Driver::Udp.check_size("--size", wrong).is_ok());
        }
        assert!(Driver::Raw.check_size("--size", 1).is_ok());
        let kernel = apus::Config::builder().profile(apus::Profile::Kernel).build().unwrap();
        assert_eq!(kernel.max_message(), MAX_RAW_MESSAGE as u64);
    }
}
