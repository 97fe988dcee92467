//! Addresses: `HOST:PORT` arguments, checked before a command starts its work.

use apus::address::AddressError;
use std::io;
use std::net::SocketAddr;

/// `HOST:PORT`, where the host is a name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    text: String,
}

impl Address {
    /// Parses an address to listen on. Port 0 picks a free port.
    ///
    /// # Errors
    ///
    /// The text is not an address; the message contains the reason and a valid address.
    pub(crate) fn parse_local(text: &str) -> Result<Self, String> {
        let try_this = "try `127.0.0.1:4000`, or `[::]:4000` for all addresses of the host";
        port(text).map(|_| Self { text: text.to_owned() }).map_err(|p| format!("{p}; {try_this}"))
    }

    /// Parses the address of a service. Port 0 is rejected.
    ///
    /// # Errors
    ///
    /// The text is not the address of a service; the message contains the reason and a valid
    /// address.
    pub(crate) fn parse_remote(text: &str) -> Result<Self, String> {
        let try_this = "try `127.0.0.1:4000`, `[::1]:4000` or `localhost:4000`";
        let port = port(text).map_err(|problem| format!("{problem}; {try_this}"))?;
        if port == 0 {
            return Err(format!("no service listens on port 0; {try_this}"));
        }
        Ok(Self { text: text.to_owned() })
    }

    /// Returns the address as written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the IP addresses of the host with the port, in the order of the resolver's
    /// preference.
    ///
    /// # Errors
    ///
    /// The name cannot be resolved.
    pub(crate) fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        apus::address::resolve(&self.text)
    }
}

/// Returns the port of `HOST:PORT`.
fn port(text: &str) -> Result<u16, String> {
    match apus::address::parse(text) {
        Ok(address) => return Ok(address.port()),
        // It may be a name.
        Err(AddressError::NotAnAddress(_)) => {}
        Err(error) => return Err(error.to_string()),
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err("the port is missing".to_owned());
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    if host.contains(':') || host.starts_with('[') {
        return Err("an IPv6 address is written in brackets, followed by the port".to_owned());
    }
    port.parse().map_err(|_| format!("`{port}` is not a port from 0 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_accepted() {
        for good in ["127.0.0.1:4000", "[::1]:4000", "localhost:1", "a-b.example:65535"] {
            assert_eq!(Address::parse_remote(good).unwrap().as_str(), good);
            Address::parse_local(good).unwrap();
        }
        Address::parse_local("[::]:0").unwrap();
    }

    #[test]
    fn the_message_names_what_is_wrong() {
        for (wrong, problem) in [
            ("", "port is missing"),
            ("127.0.0.1", "port is missing"),
            (":4000", "host is missing"),
            ("::1:4000", "brackets"),
            ("[::1]", "brackets"),
            ("[::1]:", "brackets"),
            ("localhost:", "not a port"),
            ("localhost:65536", "not a port"),
            ("localhost:-1", "not a port"),
            ("127.0.0.1:0", "port 0"),
            ("[fe80::1]:4000", "needs %interface"),
            ("[fe80::1%nosuch]:4000", "no interface \"nosuch\""),
            ("fe80::1%lo:4000", "brackets"),
        ] {
            let error = Address::parse_remote(wrong).unwrap_err();
            assert!(error.contains(problem) && error.contains("try `"), "{wrong}: {error}");
        }
    }

    #[test]
    fn ip_addresses_resolve_to_themselves() {
        let address = Address::parse_remote("[::1]:4000").unwrap();
        assert_eq!(address.resolve().unwrap(), ["[::1]:4000".parse().unwrap()]);
        let address = Address::parse_local("[fe80::1%lo]:4000").unwrap();
        assert_eq!(
            address.resolve().unwrap(),
            [apus::address::parse("[fe80::1%lo]:4000").unwrap()]
        );
    }
}
