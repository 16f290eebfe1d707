//! Names of well-known programs.
//!
//! A bare pair such as `99.9 java` may mean anything. A known program in it shows that it is a row
//! of a list of processes. The names here mean hardly anything else. A plain English word such as
//! `node` needs a second sign.

/// Names in order, without version numbers at their end.
const NAMES: &str = "apache2 arangod beam.smp bitcoind borg caddy cassandra cc1 cc1plus \
    ceph-osd chrome \
    chromium clamd clang clickhouse clickhouse-server collectd compiz containerd cupsd dnsmasq \
    dockerd dovecot dpkg elasticsearch etcd ffmpeg fio firefox firefox-bin fluentd frigate gcc \
    gnome-shell grafana gunicorn gzip haproxy homeassistant httpd influxd iperf3 irqbalance \
    java journald k3s kube-apiserver kubelet kvm kwin_x11 libvirtd mariadbd mediasoup \
    memcached minio mongod mongos mprime mysqld named netdata nextcloud nfsd nginx nodejs \
    ollama packagekitd php php-cgi php-fpm pihole-FTL pipewire plasmashell postgres postmaster \
    prometheus pulseaudio pveproxy python qbittorrent qbittorrent-nox qemu qemu-kvm rabbitmq \
    redis-server restic rsync rsyslogd rustc sha256sum slapd smbd snapd sonarr splunkd \
    sqlservr sshd stress stress-ng supervisord systemd systemd-journald systemd-udevd tomcat \
    udevd vmtoolsd xmrig xz";

/// Whether a name is one of a well-known program; its version is ignored (`python3.11`).
pub(crate) fn is_known_program(name: &str) -> bool {
    let of_version = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let known = |name: &str| NAMES.split(' ').any(|known| known == name);
    known(name) || known(of_version) || name.starts_with("qemu-system-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_versions_are_ignored() {
        assert!(NAMES.split(' ').is_sorted());
        for name in ["java", "python3.11", "php-fpm8.2", "qemu-system-x86_64", "apache2"] {
            assert!(is_known_program(name), "{name}");
        }
        for name in ["apples", "the", "sda1", "node", ""] {
            assert!(!is_known_program(name), "{name}");
        }
    }
}
