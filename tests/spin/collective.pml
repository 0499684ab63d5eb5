/* SPDX-License-Identifier: MIT
 *
 * The protocol of comm/collective_buffer.c: two ranks, two sub-buffers used in turn, three rounds,
 * messages of two slots, and stores that become visible one at a time, slot by slot.  In every
 * round each rank may or may not have something to send (a broadcast, an empty part; chosen freely),
 * so that both ways of knowing that a row is free are used: what the peer has sent, and its count
 * of completed rounds.
 *
 * Checked exhaustively: no reader takes a word of another round, no writer overwrites a word that
 * has not been read, no sentinel is put over a word that has not been read, nobody waits for ever.
 * -DSENTINEL is that mode, else ll; -DBROKEN lets a writer run one round too far: must fail. */
#define ROUNDS 3
#define SLOTS 2
#ifdef BROKEN
#define AHEAD 3
#else
#define AHEAD 2
#endif

/* inbox of rank r, sub-buffer h, slot s: [(r * 2 + h) * SLOTS + s]; the word is the round that sent
 * it, 0 stands for the sentinel, and `flag` is the epoch of mode ll */
byte word[8], flag[8];
bool unread[8];
byte done[2];
bool sends[8]; /* [round * 2 + rank] */

#define AT(r, e, s) (((r) * 2 + (e) % 2) * SLOTS + (s))

proctype rank(byte me)
{
  byte peer = 1 - me, epoch = 1, known = 0, s, seen;
  do
  :: epoch <= ROUNDS ->
    if
    :: sends[epoch * 2 + me] ->
      do
      :: known + AHEAD >= epoch -> break
      :: else -> known = done[peer] /* spins */
      od;
      s = 0;
      do
      :: s < SLOTS ->
        d_step { /* one 16-byte store, or one of 8 bytes */
          assert(!unread[AT(peer, epoch, s)]);
#ifdef SENTINEL
          assert(word[AT(peer, epoch, s)] == 0);
#endif
          word[AT(peer, epoch, s)] = epoch;
          flag[AT(peer, epoch, s)] = epoch;
          unread[AT(peer, epoch, s)] = true;
        }
        s++
      :: else -> break
      od
    :: else -> skip
    fi;
    if
    :: sends[epoch * 2 + peer] ->
      s = 0;
      do
      :: s < SLOTS ->
#ifdef SENTINEL
        d_step { word[AT(me, epoch, s)] != 0 -> seen = word[AT(me, epoch, s)]; }
#else
        d_step { flag[AT(me, epoch, s)] == epoch -> seen = word[AT(me, epoch, s)]; }
#endif
        d_step {
          assert(seen == epoch && word[AT(me, epoch, s)] == epoch);
          unread[AT(me, epoch, s)] = false;
        }
        s++
      :: else -> break
      od;
#ifdef SENTINEL
      s = 0;
      do
      :: s < SLOTS ->
        d_step {
          assert(!unread[AT(me, epoch, s)]);
          word[AT(me, epoch, s)] = 0;
        }
        s++
      :: else -> break
      od;
#endif
      if
      :: known + 1 < epoch -> known = epoch - 1
      :: else -> skip
      fi
    :: else -> skip
    fi;
    done[me] = epoch;
    epoch++
  :: else -> break
  od
}

init {
  byte i = 2;
  do
  :: i < 8 ->
    if
    :: sends[i] = true
    :: sends[i] = false
    fi;
    i++
  :: else -> break
  od;
  atomic { run rank(0); run rank(1) }
}
