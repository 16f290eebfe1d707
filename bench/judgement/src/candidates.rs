//! Candidates.
use crate::lists::{Lists, NOWHERE};
use crate::peers::Replacement;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Mode {
    Lru,
    Arc,
    /// IRR test, demote
    Lirs,
    /// always promote, evict
    TwoQ,
}

const W: u8 = 0;
const T1: u8 = 1;
const T2: u8 = 2;
const B1: u8 = 3;
const B2: u8 = 4;

pub struct Machine {
    lists: Lists,
    stamp: Vec<u64>,
    clock: u64,
    capacity: usize,
    pub mode: Mode,
    window: [usize; 4],
    ghosts: f64,
    p: f64,
    uses: Vec<u8>,
    freq: bool,
    ordinal: Vec<u64>,
    pushed: u64,
    gq: f64,
    onlyb1: bool,
    twice: u8,
}

impl Machine {
    pub fn new(numbers: usize, capacity: usize, mode: Mode) -> Self {
        let share = |name: &str, default: f64| {
            std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
        };
        let w = |s: f64| ((capacity as f64 * s).round() as usize).clamp(1, capacity.max(2) - 1);
        Self {
            lists: Lists::new(numbers, 5),
            stamp: vec![0; numbers],
            clock: 0,
            capacity,
            mode,
            window: [0, 0, w(share("WL", 0.01)), w(share("WQ", 0.1))],
            ghosts: share("GH", 1.0),
            p: 0.0,
            uses: vec![0; numbers],
            freq: share("FREQ", 0.0) > 0.0,
            ordinal: vec![0; numbers],
            pushed: 0,
            gq: share("GQ", 0.9),
            onlyb1: share("ONLYB1", 0.0) > 0.0,
            twice: share("TWICE", 2.0) as u8,
        }
    }

    fn older(&self, a: u8, b: u8) -> Option<u8> {
        match (self.lists.tail(a), self.lists.tail(b)) {
            (Some(x), Some(y)) => {
                Some(if self.stamp[x as usize] < self.stamp[y as usize] { a } else { b })
            }
            (Some(_), None) => Some(a),
            (None, Some(_)) => Some(b),
            _ => None,
        }
    }

    fn main(&self) -> usize {
        self.lists.len(T1) + self.lists.len(T2)
    }

    fn window(&self) -> usize {
        self.window[self.mode as usize]
    }

    pub fn set_mode(&mut self, mode: Mode) {
        if self.mode == mode {
            return;
        }
        self.mode = mode;
        if matches!(mode, Mode::Arc | Mode::Lru) {
            // the window is the young part of MRU
            while let Some(x) = self.lists.pop_tail(W) {
                self.lists.push_head(T1, x);
            }
            if mode == Mode::Arc {
                while self.lists.len(T1) + self.lists.len(B1) > self.capacity
                    && self.lists.pop_tail(B1).is_some()
                {}
                while self.lists.len(T2) + self.lists.len(B2) + self.lists.len(T1) + self.lists.len(B1)
                    > 2 * self.capacity
                    && self.lists.pop_tail(B2).is_some()
                {}
            }
        }
    }

    fn evict(&mut self, list: u8) {
        if let Some(x) = self.lists.pop_tail(list) {
            self.lists.push_head(if list == T2 { B2 } else { B1 }, x);
            self.pushed += u64::from(list == W);
            self.ordinal[x as usize] = self.pushed;
        }
    }

    fn replace(&mut self, from_b2: bool) {
        let l1 = self.lists.len(T1) as f64;
        if l1 > 0.0 && (l1 > self.p || (from_b2 && l1 >= self.p)) {
            self.evict(T1);
        } else if self.lists.len(T2) > 0 {
            self.evict(T2);
        } else {
            self.evict(T1);
        }
    }

    /// second chance for T2's tail, by its uses
    fn evict_main(&mut self) {
        loop {
            let Some(list) = self.older(T1, T2) else { return };
            if self.freq && list == T2 {
                let x = self.lists.tail(T2).unwrap();
                if self.uses[x as usize] > 0 {
                    self.uses[x as usize] -= 1;
                    self.lists.move_to_head(T2, x);
                    self.stamp[x as usize] = self.clock;
                    continue;
                }
            }
            self.evict(list);
            return;
        }
    }

    fn make_room(&mut self) {
        while self.lists.len(W) + self.main() >= self.capacity {
            match self.mode {
                Mode::Lru => {
                    if let Some(list) = self.older(T1, T2) {
                        self.evict(list);
                    } else {
                        self.evict(W);
                    }
                }
                Mode::Arc => unreachable!(),
                Mode::Lirs | Mode::TwoQ => {
                    if self.main() > self.capacity - self.window() || self.lists.len(W) == 0 {
                        self.evict_main();
                    } else if self.mode == Mode::TwoQ
                        && let Some(x) = self.lists.tail(W)
                        && self.uses[x as usize] >= self.twice
                    {
                        self.uses[x as usize] = 0;
                        self.lists.move_to_head(T2, x);
                        self.stamp[x as usize] = self.clock;
                    } else {
                        self.evict(W);
                    }
                }
            }
        }
    }

    fn trim_ghosts(&mut self) {
        let most = (self.ghosts * self.capacity as f64) as usize;
        while self.lists.len(B1) + self.lists.len(B2) > most {
            let list = self.older(B1, B2).unwrap();
            self.lists.pop_tail(list);
        }
    }

    fn to_main(&mut self, x: u32) {
        self.lists.move_to_head(T2, x);
        self.stamp[x as usize] = self.clock;
    }

    fn adapt(&mut self, at: u8) {
        let (b1, b2) = (self.lists.len(B1) as f64, self.lists.len(B2) as f64);
        if at == B1 {
            self.p = (self.p + (b2 / b1).max(1.0)).min(self.capacity as f64);
        } else if at == B2 {
            self.p = (self.p - (b1 / b2).max(1.0)).max(0.0);
        }
    }

    fn arc(&mut self, x: u32, at: u8) -> bool {
        let c = self.capacity;
        let (l1, l2, g1, g2) =
            (self.lists.len(T1), self.lists.len(T2), self.lists.len(B1), self.lists.len(B2));
        self.stamp[x as usize] = self.clock;
        match at {
            W | T1 | T2 => {
                self.lists.move_to_head(T2, x);
                return true;
            }
            B1 | B2 => {
                self.adapt(at);
                self.lists.take(x);
                if l1 + l2 >= c {
                    self.replace(at == B2);
                }
                self.lists.push_head(T2, x);
            }
            _ => {
                if l1 + g1 >= c {
                    if g1 > 0 {
                        self.lists.pop_tail(B1);
                        if l1 + l2 >= c {
                            self.replace(false);
                        }
                    } else {
                        self.lists.pop_tail(T1);
                    }
                } else if l1 + l2 >= c {
                    if l1 + l2 + g1 + g2 >= 2 * c {
                        self.lists.pop_tail(if g2 > 0 { B2 } else { B1 });
                    }
                    self.replace(false);
                }
                self.lists.push_head(T1, x);
            }
        }
        false
    }
}

impl Replacement for Machine {
    fn access(&mut self, x: u32) -> bool {
        self.clock += 1;
        let at = self.lists.at(x);
        let hit = at <= T2;
        let i = x as usize;
        self.uses[i] = if hit { (self.uses[i] + 1).min(3) } else { 0 };
        if self.mode == Mode::Arc {
            return self.arc(x, at);
        }
        if at == B1 || at == B2 {
            self.adapt(at);
        }
        let room = self.main() < self.capacity - self.window();
        let horizon = self.older(T1, T2).and_then(|l| self.lists.tail(l));
        let horizon = horizon.map_or(0, |v| self.stamp[v as usize]);
        let recent = at != NOWHERE && self.stamp[i] >= horizon;
        match at {
            T1 | T2 => self.to_main(x),
            W => match self.mode {
                Mode::Lirs if room || recent => {
                    self.to_main(x);
                    if self.main() > self.capacity - self.window() {
                        let list = self.older(T1, T2).unwrap();
                        let v = self.lists.tail(list).unwrap();
                        self.lists.move_to_head(W, v);
                    }
                }
                Mode::Lirs => {
                    self.lists.move_to_head(W, x);
                    self.stamp[i] = self.clock;
                }
                // promoted when it leaves the window
                _ => {}
            },
            _ => {
                if at != NOWHERE {
                    self.lists.take(x);
                }
                self.make_room();
                let ghost = at != NOWHERE;
                let promote = match self.mode {
                    Mode::Lirs => recent,
                    Mode::TwoQ => {
                        ghost && (self.pushed - self.ordinal[i]) as f64
                            <= self.gq * self.capacity as f64 && (at == B1 || !self.onlyb1)
                    }
                    Mode::Lru => ghost,
                    Mode::Arc => unreachable!(),
                };
                if promote {
                    self.lists.push_head(T2, x);
                    if self.mode == Mode::Lirs && self.main() > self.capacity - self.window() {
                        let list = self.older(T1, T2).unwrap();
                        let v = self.lists.tail(list).unwrap();
                        self.lists.move_to_head(W, v);
                    }
                } else if self.mode == Mode::Lru || room {
                    self.lists.push_head(T1, x);
                } else {
                    self.lists.push_head(W, x);
                }
                self.stamp[i] = self.clock;
                self.trim_ghosts();
            }
        }
        hit
    }
}

pub fn make(name: &str, numbers: usize, entries: usize) -> Box<dyn Replacement> {
    if let Some(spec) = name.strip_prefix("duel:") {
        return Box::new(Duel::new(spec, numbers, entries));
    }
    let mode = match name {
        "m-lru" => Mode::Lru,
        "m-arc" => Mode::Arc,
        "m-lirs" => Mode::Lirs,
        "m-2q" => Mode::TwoQ,
        _ => panic!("no policy {name}"),
    };
    Box::new(Machine::new(numbers, entries, mode))
}

pub struct Duel {
    arms: Vec<Machine>,
    names: Vec<String>,
    score: Vec<f64>,
    noise: Vec<f64>,
    real: Machine,
    now: usize,
    switches: u64,
    decay: f64,
    thr: f64,
    ticks: Vec<u64>,
    min_dwell: u64,
    since: u64,
    rate: u64,
    total: Vec<u64>,
    sampled: u64,
    cost: f64,
    ramp: bool,
    home: f64,
    evicted: u64,
    trace_every: u64,
    last: (u64, Vec<u64>),
    real_hits: u64,
}

fn env(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

fn mode(name: &str) -> Mode {
    match name {
        "lru" => Mode::Lru,
        "arc" => Mode::Arc,
        "lirs" => Mode::Lirs,
        "2q" => Mode::TwoQ,
        _ => panic!("no policy {name}"),
    }
}

impl Duel {
    pub fn new(spec: &str, numbers: usize, capacity: usize) -> Self {
        let names: Vec<String> = spec.split('+').map(str::to_owned).collect();
        let sample = env("S", 1024.0).min(capacity as f64);
        let rate = (sample / capacity as f64 * 2f64.powi(32)) as u64;
        let arms: Vec<Machine> =
            names.iter().map(|n| Machine::new(numbers, sample as usize, mode(n))).collect();
        let real = Machine::new(numbers, capacity, mode(&names[0]));
        let k = arms.len();
        Self {
            arms,
            names,
            score: vec![0.0; k],
            noise: vec![0.0; k],
            real,
            now: 0,
            switches: 0,
            decay: (-1.0 / (env("H", 4.0) * sample)).exp(),
            thr: env("THR", 1.0),
            ticks: vec![0; k],
            min_dwell: (env("DWELL", 0.0) * capacity as f64) as u64,
            since: 0,
            rate,
            total: vec![0; k],
            sampled: 0,
            ramp: env("RAMP", 1.0) > 0.0,
            home: env("AHOME", 0.0) * sample,
            evicted: 0,
            cost: env("A", 0.0) * sample,
            trace_every: env("EVERY", 0.0) as u64,
            last: (0, vec![0; k]),
            real_hits: 0,
        }
    }
}

impl Replacement for Duel {
    fn access(&mut self, x: u32) -> bool {
        self.ticks[self.now] += 1;
        self.since += 1;
        if self.trace_every > 0 && self.ticks.iter().sum::<u64>() % self.trace_every == 0 {
            let n = self.sampled.max(1) - self.last.0;
            eprintln!(
                "  at {} {} real {:.2} shadows {:.2?} p {:.2} W {} T1 {} T2 {} B1 {} B2 {}",
                self.ticks.iter().sum::<u64>(),
                self.names[self.now],
                100.0 * self.real_hits as f64 / self.trace_every as f64,
                self.total.iter().zip(&self.last.1).map(|(t, l)| 100.0 * (t - l) as f64 / n as f64).collect::<Vec<_>>(),
                self.real.p / self.real.capacity as f64,
                self.real.lists.len(W),
                self.real.lists.len(T1),
                self.real.lists.len(T2),
                self.real.lists.len(B1),
                self.real.lists.len(B2),
            );
            self.real_hits = 0;
            self.last = (self.sampled, self.total.clone());
        }
        let hit = self.go(x);
        self.real_hits += u64::from(hit);
        hit
    }

    fn tell(&self) -> String {
        self.said()
    }
}

impl Duel {
    fn go(&mut self, x: u32) -> bool {
        let mut hash = (u64::from(x) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        if hash >> 32 >= self.rate {
            return self.real.access(x);
        }
        self.sampled += 1;
        let arm = &self.arms[self.now];
        let full = arm.lists.len(W) + arm.main() >= arm.capacity;
        self.evicted += u64::from(full && !hit_of(arm, x));
        let hits: Vec<bool> = self.arms.iter_mut().map(|arm| arm.access(x)).collect();
        for (i, &h) in hits.iter().enumerate() {
            self.total[i] += u64::from(h);
            self.score[i] = self.score[i] * self.decay + f64::from(u8::from(h));
            let differs = h != hits[self.now];
            self.noise[i] = self.noise[i] * self.decay + f64::from(u8::from(differs));
        }
        let best = (0..hits.len()).max_by(|&a, &b| self.score[a].total_cmp(&self.score[b])).unwrap();
        let lead = self.score[best] - self.score[self.now];
        if best != self.now
            && lead > self.thr * self.noise[best].sqrt() + 1.0 + (if self.arms[best].mode == Mode::Arc { self.home } else { self.cost }) * (if self.ramp { (self.evicted as f64 / self.arms[0].capacity as f64).min(1.0) } else { 1.0 })
            && self.since >= self.min_dwell
        {
            self.now = best;
            self.switches += 1;
            self.since = 0;
            self.real.set_mode(self.arms[best].mode);
            if self.real.mode == Mode::Arc {
                let arm = &self.arms[best];
                self.real.p = arm.p / arm.capacity as f64 * self.real.capacity as f64;
            }
            self.noise.iter_mut().for_each(|n| *n = 0.0);
        }
        self.real.access(x)
    }

    fn said(&self) -> String {
        format!(
            "{} switches; {:?} {:?} shadows {:.2?} p {:.3} real {:.3}",
            self.switches,
            self.names,
            self.ticks,
            self.total.iter().map(|&t| 100.0 * t as f64 / self.sampled as f64).collect::<Vec<_>>(),
            self.arms[0].p / self.arms[0].capacity as f64,
            self.real.p / self.real.capacity as f64,
        )
    }
}

fn hit_of(arm: &Machine, x: u32) -> bool {
    arm.lists.at(x) <= T2
}
