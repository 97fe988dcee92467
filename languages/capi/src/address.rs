//! Addresses of peers.

use crate::boundary::{check_result, invalid, reference, run, text};
use crate::error::{ErrorC, copy_text};
use apus_bindings::{Failure, Status};
use std::ffi::c_char;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The address of an endpoint. A plain value that may be copied and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Address {
    /// Bytes of the IP address in network order. An IPv4 address uses the first four; the others
    /// are 0.
    pub ip: [u8; 16],
    /// Scope of a link-local IPv6 address, such as the number of an interface; otherwise 0.
    pub scope_id: u32,
    /// The port.
    pub port: u16,
    /// 4 or 6.
    pub version: u16,
}

impl Address {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut new = Self { ip: [0; 16], scope_id: 0, port: address.port(), version: 4 };
        match address {
            SocketAddr::V4(address) => new.ip[..4].copy_from_slice(&address.ip().octets()),
            SocketAddr::V6(address) => {
                new.ip = address.ip().octets();
                new.scope_id = address.scope_id();
                new.version = 6;
            }
        }
        new
    }

    pub(crate) fn socket_addr(&self) -> Result<SocketAddr, Failure> {
        let Self { ip, scope_id, port, version } = *self;
        match version {
            4 => {
                let [a, b, c, d, ..] = ip;
                Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(a, b, c, d)), port))
            }
            6 => Ok(SocketAddrV6::new(Ipv6Addr::from(ip), port, 0, scope_id).into()),
            _ => Err(invalid("address", "has a version other than 4 and 6")),
        }
    }
}

/// Resolves an address such as `10.0.0.7:4000`, `[fd00::7]:4000`, `[fe80::7%eth0]:4000` or
/// `inventory:4000`. Looking up a name may take seconds: resolve it once, not before each call.
///
/// # Safety
///
/// `address` is a 0-terminated text, `result` points to memory for an address, and `error` is null
/// or points to memory for an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_address_parse(
    address: *const c_char,
    result: *mut Address,
    error: *mut ErrorC,
) -> Status {
    let body = || {
        check_result(result, "result")?;
        // SAFETY: promised by the caller.
        let name = unsafe { text(address, "address") }?;
        let name = name.ok_or_else(|| invalid("address", "is null"))?;
        let address = resolve(name)?;
        // SAFETY: not null, so it points to memory for an address.
        unsafe { result.write(Address::new(address)) };
        Ok(())
    };
    // SAFETY: promised by the caller.
    unsafe { run(error, body) }
}

fn resolve(name: &str) -> Result<SocketAddr, Failure> {
    let failed = |problem: String| {
        Failure::new(Status::AddressUnresolved, format!("resolve \"{name}\": {problem}"))
    };
    let addresses = apus_bindings::resolve(name).map_err(|error| failed(error.to_string()))?;
    addresses.first().copied().ok_or_else(|| failed("the name has no address".to_owned()))
}

/// Writes an address as 0-terminated text, such as "10.0.0.7:4000". 64 bytes are always enough.
///
/// # Safety
///
/// `address` points to an address, and `text` to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apus_address_format(
    address: *const Address,
    text: *mut c_char,
    size: usize,
) -> Status {
    let body = || {
        check_result(text, "text")?;
        // SAFETY: promised by the caller.
        let address = unsafe { reference(address, "address") }?.socket_addr()?.to_string();
        // Check the size first, so that a text that does not fit is not written in part.
        if size <= address.len() {
            return Err(invalid("text", "is too short for the address"));
        }
        // SAFETY: `text` has `size` bytes, more than `address`.
        let text = unsafe { std::slice::from_raw_parts_mut(text, address.len() + 1) };
        copy_text(&address, text);
        Ok(())
    };
    // SAFETY: there is no error to write.
    unsafe { run(std::ptr::null_mut(), body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive() {
        for text in ["10.1.2.3:4000", "[::1]:1", "[fe80::1%7]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Address::new(address).socket_addr().unwrap(), address);
        }
        let mut unknown = Address::new("10.1.2.3:4000".parse().unwrap());
        unknown.version = 0;
        assert_eq!(unknown.socket_addr().unwrap_err().status, Status::InvalidArgument);
    }
}
