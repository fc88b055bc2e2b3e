// delaylink: a wire between two network namespaces, by a pair of TUN devices of one name.
//
//     delaylink name nsA nsB delay_ms rate_mbit queue_kB loss_ppm hold_ms
//
// Each direction has a one-way delay, a rate (0: as fast as it can), a queue that drops what does
// not fit, and a share of packets that are lost, the same ones each time. hold_ms is how long the
// first packet of each TCP connection is held, as by a firewall that has to look it up.
// Packets of a stream are carried some at once, those of TOGETHER: to wake up for each of them
// takes more of a processor than all else. The first one is on time; of the others some are seen
// up to so much late and some sent as much early, which takes nothing from the mean, nor a rate.
// Says "ready" once both devices are there, and ends when it is killed.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { LARGEST = 9000, AT_ONCE = 64, FLOWS = 65536, TCP = 6, SYN = 0x02, ACK = 0x10 };

static const double TOGETHER = 2.5e-3;  // seconds

typedef struct packet {
    double at;
    int length;
    struct packet *next;
    unsigned char data[];
} packet;

typedef struct {
    packet *head, *tail;
} queue;

typedef struct {
    int in, out;
    double delay, rate, most, hold;
    unsigned loss, seed;
    double free_at;
    double *begun;   // by source port: when the first packet of its connection came
    queue usual, held;  // each in the order of its times
} direction;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static struct timespec seconds(double time) {
    return (struct timespec){(time_t)time, (long)((time - (time_t)time) * 1e9)};
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int device(const char *namespace, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int file = open(path, O_RDONLY);
    if (file < 0 || setns(file, CLONE_NEWNET)) fail(path);
    close(file);
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
    if (tun < 0) fail("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    strncpy(request.ifr_name, name, IFNAMSIZ - 1);
    if (ioctl(tun, TUNSETIFF, &request)) fail("TUNSETIFF");
    return tun;
}

static void append(queue *queue, packet *packet, double at) {
    packet->at = at;
    packet->next = NULL;
    if (queue->tail) queue->tail->next = packet;
    else queue->head = packet;
    queue->tail = packet;
}

static int send_due(queue *queue, int out, double time) {
    packet *packet = queue->head;
    if (!packet || packet->at > time) return 0;
    queue->head = packet->next;
    if (!queue->head) queue->tail = NULL;
    if (write(out, packet->data, packet->length) < 0 && errno != EAGAIN && errno != EIO)
        perror("write");
    free(packet);
    return 1;
}

// The source port of a packet that opens a TCP connection over IPv4, -1 of any other.
static int opening_port(const packet *packet) {
    const unsigned char *ip = packet->data;
    if (packet->length < 20 || ip[0] >> 4 != 4 || ip[9] != TCP) return -1;
    int header = (ip[0] & 15) * 4;
    if (packet->length < header + 20 || (ip[header + 13] & (SYN | ACK)) != SYN) return -1;
    return ip[header] << 8 | ip[header + 1];
}

static int is_lost(direction *way, int length, double time) {
    double backlog = way->free_at > time ? (way->free_at - time) * way->rate / 8 : 0;
    if (way->most > 0 && backlog + length > way->most) return 1;
    return way->loss && (unsigned)(rand_r(&way->seed) % 1000000) < way->loss;
}

static void take(direction *way, packet *packet, double time) {
    int port = way->hold > 0 ? opening_port(packet) : -1;
    // Held: the first word of a connection goes out later, and its repetitions not at all.
    if (port >= 0 && way->begun[port] > 0 && time < way->begun[port] + way->hold + 5) {
        free(packet);
        return;
    }
    if (port >= 0) {
        way->begun[port] = time;
        append(&way->held, packet, time + way->hold + way->delay);
        return;
    }
    if (is_lost(way, packet->length, time)) {
        free(packet);
        return;
    }
    if (way->free_at < time) way->free_at = time;
    if (way->rate > 0) way->free_at += packet->length * 8 / way->rate;
    append(&way->usual, packet, way->free_at + way->delay);
}

static void wait_for_packets(direction *way) {
    struct pollfd incoming = {way->in, POLLIN, 0};
    double wait = 1, time = now();
    if (way->usual.head) wait = way->usual.head->at - time;
    if (way->held.head && way->held.head->at - time < wait) wait = way->held.head->at - time;
    if (wait <= 0) return;
    struct timespec longest = seconds(wait);
    ppoll(&incoming, 1, &longest, NULL);
}

static int take_in(direction *way) {
    unsigned char data[LARGEST];
    for (int count = 0; count < AT_ONCE; count++) {
        int length = read(way->in, data, LARGEST);
        if (length <= 0) return count;
        packet *incoming = malloc(sizeof *incoming + length);
        if (!incoming) fail("malloc");
        incoming->length = length;
        memcpy(incoming->data, data, length);
        take(way, incoming, now());
    }
    return AT_ONCE;
}

static void *carry(void *argument) {
    direction *way = argument;
    for (;;) {
        wait_for_packets(way);
        int count = take_in(way);
        double time = now() + TOGETHER;
        while (send_due(&way->usual, way->out, time) || send_due(&way->held, way->out, time)) {
        }
        struct timespec rest = seconds(TOGETHER);
        if (count < AT_ONCE) nanosleep(&rest, NULL);
    }
    return NULL;
}

// A wire does not wait for a processor: where that is allowed it goes before everyone else.
static void hurry(void) {
    struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &first)) setpriority(PRIO_PROCESS, 0, -20);
}

int main(int count, char **argument) {
    if (count != 9) {
        fprintf(stderr, "delaylink name nsA nsB delay_ms rate_mbit queue_kB loss_ppm hold_ms\n");
        return 2;
    }
    int devices[2] = {
        device(argument[2], argument[1]), device(argument[3], argument[1])};
    hurry();
    static direction ways[2];
    pthread_t threads[2];
    for (int side = 0; side < 2; side++) {
        ways[side] = (direction){
            .in = devices[side],
            .out = devices[1 - side],
            .delay = atof(argument[4]) / 1e3,
            .rate = atof(argument[5]) * 1e6,
            .most = atof(argument[6]) * 1e3,
            .loss = atoi(argument[7]),
            .hold = atof(argument[8]) / 1e3,
            .seed = side + 1,
            .begun = calloc(FLOWS, sizeof(double)),
        };
        if (!ways[side].begun || pthread_create(&threads[side], NULL, carry, &ways[side]))
            fail("thread");
    }
    puts("ready");
    fflush(stdout);
    pthread_join(threads[0], NULL);
    return 0;
}
