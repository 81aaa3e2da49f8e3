# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# forks.pl KEYS: fills a hash, then three children at once look up and change what they see of it; most of the look-ups
# meet a few of the keys.
use strict;
use warnings;
use integer;

my $keys = shift;
my %records;
for my $i (1 .. $keys) {
    $records{"key-" . ($i * 7919 % 1000003)} = {number => $i, text => "record $i of the table"};
}
my @names = sort keys %records;

sub work {
    my ($seed) = @_;
    my ($state, $sum) = ($seed, 0);
    for my $i (1 .. 350000) {
        $state = ($state * 1103515245 + 12345) & 0x7fffffff;
        my $u = ($state >> 8) & 0xfffff;
        my $at = (($u * $u >> 20) * $u >> 20) * @names >> 20;
        my $record = $records{$names[$at]};
        $record->{number} += 1 if $i % 8 == 0;
        $sum = ($sum + $record->{number} + length $record->{text}) & 0x7fffffff;
    }
    return $sum;
}

my @pipes;
for my $child (1 .. 3) {
    my $pid = open(my $pipe, '-|') // die "cannot fork: $!";
    if ($pid == 0) { print work($child), "\n"; exit 0; }
    push @pipes, $pipe;
}
print scalar(@names), "\n";
for my $pipe (@pipes) { print <$pipe>; close $pipe or die "a child failed: $?"; }
