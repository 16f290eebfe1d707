use ogive_arc::Kind;
use ogive_arc::policy::Policy;
use ogive_arc::policy::duel::{Alone, Rule};
fn main() {
    let c = 20;
    let mut a = Policy::new(c);
    let mut b = Alone::new(c, Rule::Arc);
    let mut n = 0;
    loop {
        for k in (0..2001u64).chain((0..2000).rev()) {
            n += 1;
            let (x, y) = (a.access(k, 1, Kind::Data), b.access(k, 1));
            if x != y {
                println!("{n} {k} {x:?} {y:?} {:?}\n{b:.0?}", a.balance());
                return;
            }
        }
    }
}
