//! The other spellings of this machine in a list of hosts that are denied.
//!
//! Deno checks what a connection is asked for, and once more the address that a name leads to. So an address is denied in
//! every notation of it, and by every name. But the system also takes the address of nobody (`0.0.0.0`, `::`) for this
//! machine, what listens on one loopback address mostly listens on all, and the addresses of the machine's interfaces lead to
//! what listens on all. Whoever denies one means the machine.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

/// What reaches this machine without leaving it.
const THIS_MACHINE: [&str; 5] = ["localhost", "127.0.0.0/8", "0.0.0.0", "[::1]", "[::]"];

/// The list, and with a loopback address all other ways to this machine, for the same port if one is named.
pub fn with_this_machine(denied: &[String], own: impl FnOnce() -> Vec<IpAddr>) -> Vec<String> {
    let mut all = denied.to_vec();
    let ports: Vec<_> = denied.iter().filter_map(|host| loopback_port(host)).collect();
    // Most lists have none, and the system need not be asked.
    let own = if ports.is_empty() { Vec::new() } else { own() };
    for port in ports {
        all.extend(THIS_MACHINE.iter().map(|host| format!("{host}{port}")));
        all.extend(own.iter().map(|address| match address {
            IpAddr::V4(address) => format!("{address}{port}"),
            IpAddr::V6(address) => format!("[{address}]{port}"),
        }));
    }
    all.sort();
    all.dedup();
    all
}

/// The addresses that the machine's interfaces have now.
pub fn of_interfaces() -> Vec<IpAddr> {
    let mut addresses = Vec::new();
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: the C library makes a list, which is read as far as its links go and given back; an address has the length that
    // its family says, and need not be aligned for the structure of that family.
    unsafe {
        if libc::getifaddrs(&raw mut first) != 0 {
            return addresses;
        }
        let mut next = first;
        while let Some(interface) = next.as_ref() {
            next = interface.ifa_next;
            let Some(address) = interface.ifa_addr.as_ref() else { continue };
            match i32::from(address.sa_family) {
                libc::AF_INET => {
                    let it = interface.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                    addresses.push(Ipv4Addr::from(it.sin_addr.s_addr.to_ne_bytes()).into());
                }
                libc::AF_INET6 => {
                    let it = interface.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned();
                    addresses.push(Ipv6Addr::from(it.sin6_addr.s6_addr).into());
                }
                _ => {}
            }
        }
        libc::freeifaddrs(first);
    }
    addresses
}

/// The port with its colon, or nothing, if a host is this machine.
fn loopback_port(host: &str) -> Option<&str> {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_name = name.trim_end_matches('.').eq_ignore_ascii_case("localhost");
    let address = name.split('/').next().unwrap_or(name).parse::<IpAddr>();
    let is_here = address.is_ok_and(|address| {
        let address = address.to_canonical();
        address.is_loopback() || address.is_unspecified()
    });
    (is_name || is_here).then_some(port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(host: &str) -> Vec<String> {
        let own = || vec![[192, 0, 2, 7].into(), Ipv6Addr::LOCALHOST.into()];
        with_this_machine(&[host.to_owned()], own)
    }

    #[test]
    fn a_loopback_address_stands_for_every_way_to_this_machine() {
        for host in
            ["127.0.0.1", "localhost", "LocalHost.", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]"]
        {
            let all = spelled(host);
            let here = THIS_MACHINE.into_iter().chain(["192.0.2.7"]);
            assert!(here.into_iter().all(|other| all.iter().any(|it| it == other)), "{all:?}");
        }
        for host in ["127.0.0.1:80", "[::1]:80", "localhost:80"] {
            let all = spelled(host);
            let here = [
                "192.0.2.7:80",
                "0.0.0.0:80",
                "127.0.0.0/8:80",
                "[::]:80",
                "[::1]:80",
                "localhost:80",
            ];
            assert!(here.iter().all(|other| all.iter().any(|it| it == other)), "{all:?}");
            assert!(!all.contains(&"0.0.0.0".to_owned()), "{all:?}");
        }
    }

    #[test]
    fn loopback_is_among_the_addresses_of_interfaces() {
        assert!(of_interfaces().contains(&IpAddr::from([127, 0, 0, 1])));
    }

    #[test]
    fn other_hosts_stand_for_themselves() {
        for host in ["example.org", "192.0.2.1:443", "[2001:db8::1]", "unix:/run/x", "vsock:2:1"] {
            assert_eq!(spelled(host), [host]);
        }
    }
}
