//! How is an address written?

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// `HOST:PORT`, where the host is a name or an IP address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    text: String,
}

impl Address {
    /// The address of a service. Its port may be 0: any free one.
    ///
    /// # Errors
    ///
    /// Says what is wrong, and what would be right.
    pub(crate) fn to_serve(text: &str) -> Result<Self, String> {
        let try_this = "try `127.0.0.1:4000`, or `[::]:4000` for all addresses of the host";
        parse(text).map(|_| Self { text: text.to_owned() }).map_err(|p| format!("{p}; {try_this}"))
    }

    /// The address of a service that somebody else runs.
    ///
    /// # Errors
    ///
    /// Says what is wrong, and what would be right.
    pub(crate) fn to_call(text: &str) -> Result<Self, String> {
        let try_this = "try `127.0.0.1:4000`, `[::1]:4000` or `localhost:4000`";
        let port = parse(text).map_err(|problem| format!("{problem}; {try_this}"))?;
        if port == 0 {
            return Err(format!("nobody listens on port 0; {try_this}"));
        }
        Ok(Self { text: text.to_owned() })
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The IP addresses behind it, best first.
    ///
    /// # Errors
    ///
    /// The system knows none.
    pub(crate) fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let found: Vec<SocketAddr> = self.text.to_socket_addrs()?.collect();
        if found.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no address has that name"));
        }
        Ok(found)
    }
}

/// The port, if there is one behind a host.
fn parse(text: &str) -> Result<u16, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(address.port());
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err("the port is missing".to_owned());
    };
    if host.is_empty() {
        return Err("the host is missing".to_owned());
    }
    if host.contains(':') || host.starts_with('[') {
        return Err("an IPv6 address stands in brackets, with the port behind it".to_owned());
    }
    port.parse().map_err(|_| format!("`{port}` is no port from 0 to 65535"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_addresses_are_accepted() {
        for good in ["127.0.0.1:4000", "[::1]:4000", "localhost:1", "a-b.example:65535"] {
            assert_eq!(Address::to_call(good).unwrap().as_str(), good);
            Address::to_serve(good).unwrap();
        }
        Address::to_serve("[::]:0").unwrap();
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (wrong, problem) in [
            ("", "port is missing"),
            ("127.0.0.1", "port is missing"),
            (":4000", "host is missing"),
            ("::1:4000", "brackets"),
            ("[::1]", "brackets"),
            ("[::1]:", "brackets"),
            ("localhost:", "no port"),
            ("localhost:65536", "no port"),
            ("localhost:-1", "no port"),
            ("127.0.0.1:0", "port 0"),
        ] {
            let error = Address::to_call(wrong).unwrap_err();
            assert!(error.contains(problem) && error.contains("try `"), "{wrong}: {error}");
        }
    }

    #[test]
    fn addresses_resolve_to_themselves() {
        let address = Address::to_call("[::1]:4000").unwrap();
        assert_eq!(address.resolve().unwrap(), ["[::1]:4000".parse().unwrap()]);
    }
}
