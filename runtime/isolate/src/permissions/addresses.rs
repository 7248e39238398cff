//! The other spellings of this machine in a list of hosts that are denied.
//!
//! Deno checks what a connection is asked for, and once more the address that a name leads to. So an address is denied in
//! every notation of it, and by every name. But the system also takes the address of nobody (`0.0.0.0`, `::`) for this
//! machine, and what listens on one loopback address mostly listens on all. Whoever denies one means the machine.

use std::net::IpAddr;

/// What reaches this machine without leaving it.
const THIS_MACHINE: [&str; 5] = ["localhost", "127.0.0.0/8", "0.0.0.0", "[::1]", "[::]"];

/// The list, and with a loopback address all other ways to this machine, for the same port if one is named.
pub fn with_loopback(denied: &[String]) -> Vec<String> {
    let mut all = denied.to_vec();
    for port in denied.iter().filter_map(|host| loopback_port(host)) {
        all.extend(THIS_MACHINE.iter().map(|host| format!("{host}{port}")));
    }
    all.sort();
    all.dedup();
    all
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
        with_loopback(&[host.to_owned()])
    }

    #[test]
    fn a_loopback_address_stands_for_every_way_to_this_machine() {
        for host in
            ["127.0.0.1", "localhost", "LocalHost.", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]"]
        {
            let all = spelled(host);
            assert!(THIS_MACHINE.iter().all(|other| all.iter().any(|it| it == other)), "{all:?}");
        }
        for host in ["127.0.0.1:80", "[::1]:80", "localhost:80"] {
            let all = spelled(host);
            let here = ["0.0.0.0:80", "127.0.0.0/8:80", "[::]:80", "[::1]:80", "localhost:80"];
            assert!(here.iter().all(|other| all.iter().any(|it| it == other)), "{all:?}");
            assert!(!all.contains(&"0.0.0.0".to_owned()), "{all:?}");
        }
    }

    #[test]
    fn other_hosts_stand_for_themselves() {
        for host in ["example.org", "192.0.2.1:443", "[2001:db8::1]", "unix:/run/x", "vsock:2:1"] {
            assert_eq!(spelled(host), [host]);
        }
    }
}
