//! Where writes go: by the file's flags at that moment, while other programs append.

use super::*;
use ogive_origin::OFlags;

/// To a file without `O_APPEND`, by a program whose system call is visible.
fn seen(one_appends: &dyn Fn() -> bool) -> WriteMode<'_> {
    WriteMode { one_appends, ..WriteMode::IN_PLACE }
}

const DIRECT: WriteMode<'static> = WriteMode { is_direct: true, ..WriteMode::APPENDS };

fn append_behind(fixture: &Fixture, bytes: &[u8]) {
    let behind = fs::OpenOptions::new().append(true).open(fixture.path("log")).unwrap();
    std::io::Write::write_all(&mut &behind, bytes).unwrap();
}

fn open(fixture: &Fixture, flags: OFlags) -> u64 {
    fixture.open("log", flags).handle
}

impl Fixture {
    fn write(&self, handle: u64, offset: u64, bytes: &[u8], mode: WriteMode<'_>) {
        assert_eq!(self.view.write(handle, offset, bytes, mode), Ok(bytes.len()));
    }

    fn log(&self) -> Vec<u8> {
        fs::read(self.path("log")).unwrap()
    }
}

#[test]
fn appends_of_several_writers_are_all_read() {
    let fixture = fixture();
    fs::write(fixture.path("log"), b"").unwrap();
    let opened = fixture.open("log", OFlags::RDWR | OFlags::APPEND);
    let mut expected = Vec::new();
    for round in 0..50u8 {
        // Another program appends behind the mount, so the kernel's offset is wrong.
        let offset = expected.len() as u64;
        let behind = fs::OpenOptions::new().append(true).open(fixture.path("log")).unwrap();
        std::io::Write::write_all(&mut &behind, &[b'-', round]).unwrap();
        fixture.view.write(opened.handle, offset, &[b'+', round], WriteMode::APPENDS).unwrap();
        expected.extend([b'-', round, b'+', round]);
        assert_eq!(fixture.read(opened.handle, 0, 1 << 20), expected);
    }
}

#[test]
fn a_write_goes_where_the_flag_of_that_moment_says() {
    for flags in [OFlags::RDWR, OFlags::RDWR | OFlags::APPEND] {
        let fixture = fixture();
        fs::write(fixture.path("log"), "hello world").unwrap();
        let handle = open(&fixture, flags);
        fixture.write(handle, 0, b"J", WriteMode::IN_PLACE);
        assert_eq!(fixture.log(), b"Jello world");
        fixture.write(handle, 11, b", bye", WriteMode::APPENDS);
        append_behind(&fixture, b" all");
        fixture.write(handle, 16, b"!", WriteMode::APPENDS);
        assert_eq!(fixture.log(), b"Jello world, bye all!");
        fixture.write(handle, 1, b"u", WriteMode::IN_PLACE);
        assert_eq!(fixture.log(), b"Jullo world, bye all!");
        assert_eq!(fixture.read(handle, 0, 100), fixture.log());
    }
}

#[test]
fn an_append_goes_to_the_end_wherever_the_kernel_sends_it() {
    // The kernel may have taken the size in this reply, or an earlier one.
    for size in [6, 9] {
        let fixture = fixture();
        fs::write(fixture.path("log"), "12345").unwrap();
        let number = fixture.lookup("log").number;
        append_behind(&fixture, b"67");
        // The kernel may have cached any size.
        let handle = fixture.view.open(number, OFlags::RDWR | OFlags::APPEND, 1).unwrap().handle;
        fixture.write(handle, 5, b"8", WriteMode::APPENDS);
        append_behind(&fixture, b"9");
        fixture.view.attributes(number, None).unwrap();
        fixture.write(handle, size, b"A", WriteMode::APPENDS);
        assert_eq!(fixture.log(), b"123456789A");
    }
}

#[test]
fn an_answer_that_the_kernel_takes_late_moves_no_append() {
    for mode in [WriteMode::APPENDS, DIRECT] {
        let fixture = fixture();
        fs::write(fixture.path("log"), "12345").unwrap();
        let handle = open(&fixture, OFlags::WRONLY | OFlags::APPEND);
        append_behind(&fixture, b"67");
        // Another program asks, and the kernel takes the reply after the next append was sent.
        fixture.view.attributes(fixture.lookup("log").number, None).unwrap();
        fixture.write(handle, 5, b"8", mode);
        append_behind(&fixture, b"9");
        fixture.write(handle, 7, b"A", mode);
        append_behind(&fixture, b"B");
        fixture.write(handle, 8, b"C", mode);
        assert_eq!(fixture.log(), b"123456789ABC");
    }
}

#[test]
fn any_of_several_answers_before_the_first_open_may_be_the_last() {
    for mode in [WriteMode::APPENDS, DIRECT] {
        let fixture = fixture();
        fs::write(fixture.path("log"), "12345").unwrap();
        fixture.lookup("log");
        append_behind(&fixture, b"67");
        let handle = open(&fixture, OFlags::WRONLY | OFlags::APPEND);
        append_behind(&fixture, b"8");
        // Two threads looked it up, and one reply overtook the other.
        fixture.write(handle, 5, b"9", mode);
        assert_eq!(fixture.log(), b"123456789");
    }
}

#[test]
fn an_append_to_a_file_cut_behind_the_mount_goes_to_its_end() {
    for mode in [WriteMode::APPENDS, DIRECT] {
        let fixture = fixture();
        fs::write(fixture.path("log"), vec![1; 3 << 20]).unwrap();
        let handle = open(&fixture, OFlags::WRONLY | OFlags::APPEND);
        fs::write(fixture.path("log"), "").unwrap();
        fixture.write(handle, 3 << 20, b"anew", mode);
        fixture.write(handle, (3 << 20) + 4, b", and more", mode);
        assert_eq!(fixture.log(), b"anew, and more");
    }
}

#[test]
fn rwf_append_is_found_in_the_programs_call() {
    let fixture = fixture();
    fs::write(fixture.path("log"), "12345").unwrap();
    let handle = open(&fixture, OFlags::RDWR);
    append_behind(&fixture, b"67");
    fixture.write(handle, 5, b"8", seen(&|| true));
    assert_eq!(fixture.log(), b"12345678");
    fixture.write(handle, 6, b"x", seen(&|| false));
    assert_eq!(fixture.log(), b"123456x8", "the write was meant for there");
    let never = || -> bool { panic!("no need to ask") };
    fixture.write(handle, 4, b"z", seen(&never));
    append_behind(&fixture, b"9");
    fixture.write(handle, 8, b"A", WriteMode { one_appends: &never, ..WriteMode::APPENDS });
    assert_eq!(fixture.log(), b"1234z6x89A");
}

/// Parts of a write past the page cache are sent at once and arrive in any order.
#[test]
fn parts_of_an_append_stand_in_their_order() {
    const PART: u64 = 1 << 20;
    let part = |number: u8, length: usize| pattern(length, number.wrapping_mul(37));
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [0, 2, 1, 3]] {
        for was_longer in [false, true] {
            let fixture = fixture();
            fs::write(fixture.path("log"), "12345").unwrap();
            let handle = open(&fixture, OFlags::WRONLY | OFlags::APPEND);
            let mut expected = b"12345".to_vec();
            if was_longer {
                append_behind(&fixture, b"67");
                expected.extend_from_slice(b"67");
            }
            let length = |number: u64| if number == 3 { 100 } else { PART as usize };
            for number in order {
                let bytes = part(number as u8, length(number));
                fixture.write(handle, 5 + number * PART, &bytes, DIRECT);
            }
            (0..4).for_each(|number| expected.extend(part(number as u8, length(number))));
            assert!(fixture.log() == expected, "{order:?}, {was_longer}");
            // Later writes are appended as usual, with other programs appending too.
            append_behind(&fixture, b"behind");
            fixture.write(handle, 5 + 3 * PART + 100, b"end", DIRECT);
            expected.extend_from_slice(b"behindend");
            assert!(fixture.log() == expected, "{order:?}, {was_longer}");
        }
    }
}
